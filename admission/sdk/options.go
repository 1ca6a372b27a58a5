package sdk

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"
)

// ErrUsage marks errors about options.
var ErrUsage = errors.New("usage")

// Options say how a service is reached and what a review may cost.
type Options struct {
	// Address serves the contract over gRPC, ReviewAddress AdmissionReview over HTTPS at
	// /mutate and /validate, StatusAddress /livez, /readyz and /metrics over HTTP. One of
	// the first two is required; an empty address serves nothing.
	Address, ReviewAddress, StatusAddress string
	// CertFile and KeyFile are the certificate of both servers. Without them one for
	// localhost is created in CertDir. All files are read again when they change.
	CertFile, KeyFile, CertDir string
	// ClientCAFile has the certificates of the authorities that sign the callers over gRPC.
	// It is required unless Address is a loopback address. ReviewClientCAFile is the same
	// for AdmissionReview, where it is optional, because many callers have no certificate.
	ClientCAFile, ReviewClientCAFile string
	// AllowedCallers are the names of which a caller's certificate must have one; empty
	// allows all certificates of the authorities.
	AllowedCallers []string
	// MaxRequestBytes bounds a request. MaxInFlight bounds the reviews at one time; further
	// ones fail with 503. Timeout bounds a review if its caller allows more.
	MaxRequestBytes, MaxInFlight int
	Timeout                      time.Duration
	// DrainDelay is how long the service still accepts reviews, but is not ready, before it
	// stops. DrainTimeout bounds the wait for the reviews in progress after that.
	DrainDelay, DrainTimeout time.Duration
	// Log receives failures; nil logs as text to the standard error output.
	Log *slog.Logger
}

// DefaultOptions returns the options of a command line without flags.
func DefaultOptions() Options {
	return Options{
		Address: "127.0.0.1:9443", CertDir: "certificates",
		// An update has two objects of at most 3 MiB, and AdmissionReview adds its options
		// and user.
		MaxRequestBytes: 8 << 20, MaxInFlight: 400, Timeout: 30 * time.Second, DrainTimeout: 20 * time.Second,
	}
}

// Flags registers the flags of all options except Log. The values are the defaults.
func (o *Options) Flags(fs *flag.FlagSet) {
	fs.StringVar(&o.Address, "address", o.Address, "`address` of gRPC; empty serves none")
	fs.StringVar(&o.ReviewAddress, "review-address", o.ReviewAddress, "`address` of AdmissionReview over HTTPS; empty serves none")
	fs.StringVar(&o.StatusAddress, "status-address", o.StatusAddress, "`address` of /livez, /readyz and /metrics over HTTP; empty serves none")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "`file` with the certificate of the servers")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "`file` with its key")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir, "`folder` in which a certificate for localhost is created when --tls-cert-file is not set")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "`file` with the authorities of the callers over gRPC; required unless --address is a loopback address")
	fs.StringVar(&o.ReviewClientCAFile, "review-client-ca-file", o.ReviewClientCAFile, "`file` with the authorities of the callers of AdmissionReview; empty accepts callers without a certificate")
	fs.Func("allowed-callers", "comma-separated `names`, of which a caller's certificate must have one; empty allows all", func(text string) error {
		o.AllowedCallers = strings.Split(text, ",")
		return nil
	})
	fs.IntVar(&o.MaxRequestBytes, "max-request-bytes", o.MaxRequestBytes, "largest request, in `bytes`")
	fs.IntVar(&o.MaxInFlight, "max-in-flight", o.MaxInFlight, "largest `number` of reviews at one time; further ones fail with 503")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "longest `time` of a review")
	fs.DurationVar(&o.DrainDelay, "drain-delay", o.DrainDelay, "`time` after SIGTERM in which the service is not ready but still accepts reviews")
	fs.DurationVar(&o.DrainTimeout, "drain-timeout", o.DrainTimeout, "longest `time` to wait for reviews in progress after that")
}

// check returns a usage error that names the flag.
func (o *Options) check(s Service) error {
	usage := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrUsage, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Name == "":
		return usage("Service.Name is empty")
	case s.Mutate == nil && s.Validate == nil:
		return usage("the service has neither Mutate nor Validate")
	case o.Address == "" && o.ReviewAddress == "":
		return usage("--address and --review-address are both empty")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return usage("--tls-cert-file and --tls-private-key-file must be used together")
	case o.CertFile == "" && o.CertDir == "":
		return usage("--tls-cert-file or --cert-dir is required")
	case o.Address != "" && o.ClientCAFile == "" && !loopback(o.Address):
		return usage("--client-ca-file is required: --address %s accepts callers from other machines", o.Address)
	case o.MaxRequestBytes < 1:
		return usage("--max-request-bytes: %d is not positive", o.MaxRequestBytes)
	case o.MaxInFlight < 1:
		return usage("--max-in-flight: %d is not positive", o.MaxInFlight)
	case o.Timeout <= 0:
		return usage("--timeout: %v is not positive", o.Timeout)
	case o.DrainDelay < 0 || o.DrainTimeout < 0:
		return usage("--drain-delay and --drain-timeout must not be negative")
	case len(o.AllowedCallers) > 0 && o.ClientCAFile == "" && o.ReviewClientCAFile == "":
		return usage("--allowed-callers has no effect without --client-ca-file or --review-client-ca-file")
	}
	return nil
}

// loopback reports whether an address is reached from this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (o *Options) logger(name string) *slog.Logger {
	if o.Log != nil {
		return o.Log
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("service", name)
}
