package sdktest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/admission/sdk/localcert"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/rpc"
)

// Result is what the API does with a request.
type Result struct {
	// Object is the object that is stored; nil if the operation has none.
	Object []byte
	// Changed reports whether Mutate changed it.
	Changed  bool
	Warnings []string
	Audit    map[string]string
	// Err is nil if the request was admitted.
	Err *services.Status
}

// Into decodes the object of the result.
func (r Result) Into(t testing.TB, into any) {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("refused: %+v", *r.Err)
	}
	if err := json.Unmarshal(r.Object, into); err != nil {
		t.Fatal(err)
	}
}

// Start returns a service in this process after its Start function, which ends with the test.
func Start(t testing.TB, s sdk.Service) services.Admission {
	t.Helper()
	if s.Start != nil {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return sdk.Admission(s, quiet())
}

// Review calls a service as the API does: it mutates, then validates the result.
func Review(ctx context.Context, a services.Admission, request sdk.Request) Result {
	mutated, err := a.Mutate(ctx, request)
	result := Result{Object: request.Object, Warnings: mutated.Warnings, Audit: map[string]string{}, Err: services.AsStatus(err)}
	for key, value := range mutated.AuditAnnotations {
		result.Audit[key] = value
	}
	if err != nil {
		return result
	}
	if mutated.Object != nil {
		request.Object, result.Object, result.Changed = mutated.Object, mutated.Object, true
	}
	validated, err := a.Validate(ctx, request)
	result.Warnings = append(result.Warnings, validated.Warnings...)
	for key, value := range validated.AuditAnnotations {
		result.Audit[key] = value
	}
	result.Err = services.AsStatus(err)
	return result
}

func quiet() sdk.Options {
	o := sdk.DefaultOptions()
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// served is a service with real listeners, and what its caller needs.
type served struct {
	*sdk.Server
	trust *tls.Config
}

// serve runs a service on free ports until the test ends.
func serve(t testing.TB, s sdk.Service) served {
	t.Helper()
	authority, err := localcert.New()
	if err != nil {
		t.Fatal(err)
	}
	dir, o := t.TempDir(), quiet()
	o.Address, o.ReviewAddress = "127.0.0.1:0", "127.0.0.1:0"
	o.CertFile, o.KeyFile, o.ClientCAFile, o.ReviewClientCAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.crt")
	cert, key, err := authority.Issue("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{o.CertFile: cert, o.KeyFile: key, o.ClientCAFile: authority.CA} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CA)
	server, err := sdk.Listen(s, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return served{server, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{pair}}}
}

// Serve runs a service on free ports of this machine until the test ends, and returns a
// client over gRPC with mutual TLS.
func Serve(t testing.TB, s sdk.Service) services.Admission {
	t.Helper()
	return serve(t, s).dial(t)
}

func (s served) dial(t testing.TB) services.Admission {
	t.Helper()
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(credentials.NewTLS(s.trust)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return client{rpc.NewAdmission(conn), rpc.NewAdmissionBatch(conn)}
}

// client calls a service, also with batches.
type client struct {
	services.Admission
	services.AdmissionBatch
}
