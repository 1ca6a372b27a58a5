// Package readiness checks the readiness of another process at its status address, for
// health checks of containers without a shell. It serves "Health endpoints" of the
// specification.
package readiness

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// timeout is longer than a process's health checks may take.
const timeout = 3 * time.Second

// Ask returns nil if the process with the status address is ready.
func Ask(address string) error {
	client := http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get((&url.URL{Scheme: "http", Host: address, Path: "/readyz"}).String())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", answer.Status)
	}
	return nil
}
