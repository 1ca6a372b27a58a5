package csrsigner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/crypto/ocsp"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/csr-signer/internal/responder"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/accept"
	"github.com/portico-platform/portico/services/kit/worker"
)

const (
	defaultValidity = time.Hour
	// leastValidity is a few times the pause between signs of life of an idle watch.
	leastValidity = 10 * time.Minute
	// maxConnections bounds the clients of the responder, who need no credentials.
	maxConnections = 256
	// maxURL bounds what is repeated in every certificate, in bytes.
	maxURL = 512
)

// publication is how others learn what was revoked: the flags --revocation-status-*.
type publication struct {
	address  string // empty: not at all
	validity time.Duration
	// lists and responders are the URLs in certificates, if there are any.
	lists, responders []string
}

func publicationFlags(fs *pflag.FlagSet) {
	fs.String("revocation-status-address", "", "`host:port` at which anybody may get the certificate revocation list and OCSP responses over HTTP, at /crl and /ocsp; "+
		"nothing is served without it")
	fs.String("revocation-status-url", "", "`URL` at which clients reach --revocation-status-address; issued certificates name it")
	fs.Duration("revocation-status-validity", defaultValidity, "how long a revocation list or an OCSP response is valid")
}

func readPublication(fs *pflag.FlagSet) (publication, error) {
	p := publication{}
	p.address, _ = fs.GetString("revocation-status-address")
	p.validity, _ = fs.GetDuration("revocation-status-validity")
	if p.validity < leastValidity {
		return p, run.Usagef("--revocation-status-validity: %v is less than %v", p.validity, leastValidity)
	}
	base, _ := fs.GetString("revocation-status-url")
	if base == "" {
		return p, nil
	}
	if p.address == "" {
		return p, run.Usagef("--revocation-status-url needs --revocation-status-address")
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(base) > maxURL {
		return p, run.Usagef("--revocation-status-url: %q is not a URL such as http://pki.example.com, of at most %d bytes", base, maxURL)
	}
	base = strings.TrimRight(base, "/")
	p.lists, p.responders = []string{base + responder.ListPath}, []string{base + responder.StatusPath}
	return p, nil
}

// start serves what the authority signs about the certificates it has issued.
func (p publication) start(n *run.Node, ca *authority, known *revocations) error {
	probe := ocsp.Response{SerialNumber: ca.certificate.SerialNumber, ThisUpdate: time.Now(), NextUpdate: time.Now()}
	if _, err := ca.SignStatus(probe); err != nil {
		return run.Usagef("--revocation-status-address: the key of --cluster-signing-key-file cannot sign OCSP responses: %v", err)
	}
	answers := &responder.Responder{Authority: ca, Source: known, Validity: p.validity, Clock: clock.RealClock{}, Log: n.Log}
	if err := answers.Init(n.Metrics); err != nil {
		return err
	}
	listener, err := accept.Listen(p.address, accept.NewSeats(maxConnections), n.Log)
	if err != nil {
		return fmt.Errorf("--revocation-status-address: %w", err)
	}
	server := &http.Server{Handler: answers, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	worker.Go(n, "following revocations", func(ctx context.Context) error {
		known.informer.RunWithContext(ctx)
		return nil
	})
	worker.Go(n, "signing revocation lists", answers.Run)
	n.Go("serving revocation lists", func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	n.OnStop(func(ctx context.Context) {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
	return nil
}
