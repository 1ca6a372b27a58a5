// Package readiness asks another process on its status address whether it is ready. It
// serves containers that have no shell to ask with, and decides nothing. It serves
// "Health endpoints" of the specification.
package readiness

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// patience is longer than a process takes for its checks.
const patience = 3 * time.Second

// Ask returns nil when the process with a status address is ready.
func Ask(address string) error {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
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
