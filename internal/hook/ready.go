package hook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/plain"
)

const (
	// probeTimeout bounds one request, and probeInterval is the time between two.
	probeTimeout  = 5 * time.Second
	probeInterval = time.Second
	// maxBody bounds the part of a response body that is quoted in an error.
	maxBody = 4 << 10
)

// readyFlags returns the command that waits until the front door is ready.
func readyFlags(flags *pflag.FlagSet) func(context.Context, io.Writer) error {
	server := flags.String("server", "", "`URL` of the front door")
	authority := flags.String("certificate-authority", "", "`file` with the CA of its certificate")
	timeout := flags.Duration("timeout", time.Minute, "how long to wait")
	return func(ctx context.Context, out io.Writer) error {
		u, err := url.Parse(*server)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%w: --server: %q is not of the form https://host:port", errUsage, *server)
		}
		content, err := os.ReadFile(*authority)
		if err != nil {
			return fmt.Errorf("%w: --certificate-authority: %w", errUsage, err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(content) {
			return fmt.Errorf("%w: --certificate-authority: no certificate in %s", errUsage, *authority)
		}
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		defer cancel()
		// Each request uses a new connection, so that the Service can choose another pod.
		client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
		if err := await(ctx, client, u.JoinPath("readyz").String()); err != nil {
			return err
		}
		_, err = plain.Fprintf(out, "%s is ready\n", *server)
		return err
	}
}

// await repeats a request until the response is 200. The error is the last one before the
// context ended.
func await(ctx context.Context, client *http.Client, address string) error {
	var last error
	for {
		err := probe(ctx, client, address)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", last)
		case <-time.After(probeInterval):
		}
	}
}

func probe(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}
