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
)

const (
	// askTimeout bounds one question, and askEvery is the time between two.
	askTimeout = 5 * time.Second
	askEvery   = time.Second
	// maxAnswer is how much of an answer is repeated in an error.
	maxAnswer = 4 << 10
)

// readyFlags returns the command that waits until the front door is ready.
func readyFlags(flags *pflag.FlagSet) func(context.Context, io.Writer) error {
	server := flags.String("server", "", "`URL` of the front door")
	authority := flags.String("certificate-authority", "", "`file` with the authority of its certificate")
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
		// Each question is a connection of its own: the Service chooses who answers.
		client := &http.Client{Timeout: askTimeout, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
		if err := await(ctx, client, u.JoinPath("readyz").String()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s is ready\n", *server)
		return err
	}
}

// await asks until the answer is 200. The error is the last one before the context ended.
func await(ctx context.Context, client *http.Client, address string) error {
	var last error
	for {
		err := ask(ctx, client, address)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", last)
		case <-time.After(askEvery):
		}
	}
}

func ask(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Status, said)
	}
	return nil
}
