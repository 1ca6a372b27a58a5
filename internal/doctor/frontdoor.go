package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// frontDoor asks a front door as its clients do. The error is one of the file.
func (e *examination) frontDoor(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	if len(config.CertData) > 0 {
		e.certificate(kubeconfig, config.CertData, "renew the user's certificate and copy the new kubeconfig")
	}
	if !e.serving(ctx, server, config) {
		return nil // nothing else can be asked
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	client.Timeout = timeout
	e.ready(ctx, client, config.Host)
	e.may(ctx, client, config.Host)
	return nil
}

// serving examines the certificate of a front door, and returns whether it can be used.
func (e *examination) serving(ctx context.Context, server *url.URL, config *rest.Config) bool {
	const check = "serving"
	address := server.Host
	if server.Port() == "" {
		address = net.JoinHostPort(server.Hostname(), "443")
	}
	name := config.ServerName
	if name == "" {
		name = server.Hostname()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// It is verified below, where what is wrong can be said.
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: name}} //nolint:gosec // see above
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		e.bad(Finding{Fail, check, address, err.Error(), "check that a front door runs there and can be reached"})
		return false
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	if _, err := shown[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: between, CurrentTime: e.now()}); err != nil {
		e.bad(Finding{Fail, check, address, err.Error(), "renew the serving certificate with the names that clients use, or configure clients with its authority"})
		return false
	}
	if left := shown[0].NotAfter.Sub(e.now()); left < soon {
		e.bad(Finding{Warn, check, address, fmt.Sprintf("the certificate expires in %v", left.Round(time.Minute)), "renew the serving certificate"})
		return true
	}
	e.ok(check, address, "the certificate is valid for %s until %s", name, shown[0].NotAfter.UTC().Format(time.DateOnly))
	return true
}

// ready requests readiness, and compares the clocks.
func (e *examination) ready(ctx context.Context, client *http.Client, server string) {
	before := e.now()
	code, body, header, err := fetch(ctx, client, server+"/readyz?verbose")
	after := e.now()
	if err != nil {
		e.bad(Finding{Fail, "ready", server, err.Error(), "check that a front door runs there and can be reached"})
		return
	}
	e.clock(server, header, before, after)
	if code != http.StatusOK {
		e.bad(Finding{Fail, "ready", server, "not ready: " + failedChecks(body), "its log has the reason of the failed check"})
		return
	}
	e.ok("ready", server, "ready")
	e.parts(server, body)
}

// parts adds what a verbose answer says about parts that fail although the process is ready.
func (e *examination) parts(subject, body string) {
	for line := range strings.Lines(body) {
		rest, failed := strings.CutPrefix(line, "[-]")
		name, why, _ := strings.Cut(strings.TrimSpace(rest), " failed: ")
		switch {
		case !failed:
		case name == "stored-objects" || name == "store-objects":
			e.bad(Finding{Fail, "objects", subject, why, "restore the encryption configuration, or replace or delete the objects as a cluster administrator: docs/operations/unreadable.md"})
		default:
			e.bad(Finding{Warn, "ready", subject, "ready, but the check " + name + " fails: " + why, "its log has the reason"})
		}
	}
}

// may asks who the user is for the suite.
func (e *examination) may(ctx context.Context, client *http.Client, server string) {
	code, _, _, err := fetch(ctx, client, server+"/api/v1/namespaces?limit=1")
	switch {
	case err != nil:
		e.bad(Finding{Fail, "request", server, err.Error(), "check the log of the front door"})
	case code == http.StatusUnauthorized:
		e.bad(Finding{Fail, "request", server, "401: the user of the kubeconfig is not known", "copy the administrator's kubeconfig again; its certificate may have expired"})
	case code != http.StatusOK && code != http.StatusForbidden:
		e.bad(Finding{Fail, "request", server, fmt.Sprintf("a list of namespaces gets %d", code), "check the log of the front door"})
	default:
		e.ok("request", server, "a request gets %d", code)
	}
}

// clock compares the time in an answer, which has no parts of a second, with the clock here.
func (e *examination) clock(subject string, header http.Header, before, after time.Time) {
	there, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	var skew time.Duration
	switch {
	case there.Add(time.Second).Before(before):
		skew = before.Sub(there)
	case there.After(after):
		skew = there.Sub(after)
	}
	f := Finding{Warn, "clock", subject, fmt.Sprintf("the clocks differ by %v", skew.Round(100*time.Millisecond)), "synchronize the clocks with NTP; certificates, tokens and leases depend on them"}
	switch {
	case skew > time.Minute:
		f.Status = Fail
		e.bad(f)
	case skew > 2*time.Second:
		e.bad(f)
	default:
		e.ok("clock", subject, "equal to the local clock")
	}
}

// fetch requests a page.
func fetch(ctx context.Context, client *http.Client, address string) (code int, body string, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, string(content), answer.Header, err
}

// failedChecks returns the names of the checks that fail in a verbose answer.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			failed = append(failed, name)
		}
	}
	return strings.Join(failed, ", ")
}

// certificate checks the expiry of the first certificate in PEM.
func (e *examination) certificate(subject string, content []byte, advice string) {
	const check = "certificates"
	cert, err := parse(content)
	if err != nil {
		e.bad(Finding{Fail, check, subject, err.Error(), advice})
		return
	}
	switch left := cert.NotAfter.Sub(e.now()); {
	case left <= 0:
		e.bad(Finding{Fail, check, subject, "expired at " + cert.NotAfter.UTC().Format(time.RFC3339), advice})
	case left < soon:
		e.bad(Finding{Warn, check, subject, fmt.Sprintf("expires in %v", left.Round(time.Minute)), advice})
	default:
		e.ok(check, subject, "valid until %s", cert.NotAfter.UTC().Format(time.DateOnly))
	}
}

func parse(content []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("it has no certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

func readCertificate(path string) (*x509.Certificate, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(content)
}
