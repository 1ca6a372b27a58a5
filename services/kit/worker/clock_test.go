package worker

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestClock: the clock of a machine that is ahead of the API does not count, also if it jumps after
// the last response; one that is behind counts.
func TestClock(t *testing.T) {
	const day = 24 * time.Hour
	var shown time.Duration // how far the API is ahead of this machine
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(shown).UTC().Format(http.TimeFormat))
	}))
	defer api.Close()
	var log strings.Builder
	config := &rest.Config{Host: api.URL}
	c := NewClock(config, slog.New(slog.NewTextHandler(&log, nil)))
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, want time.Duration) {
		t.Helper()
		if got := time.Until(c.Now()); (got - want).Abs() > tolerance+time.Second {
			t.Errorf("%s: the clock is ahead by %v, want %v", what, got, want)
		}
	}
	near("before the first response", 0)
	for what, ahead := range map[string]time.Duration{"the same time": 0, "the API is ahead": day, "the API is behind": -day, "the API is hours behind": -3 * time.Hour} {
		shown = ahead
		response, err := client.Get(api.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		near(what, min(0, ahead))
	}
	if n := strings.Count(log.String(), "ahead of that of the API"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, log.String())
	}
	shown = 0
	response, err := client.Get(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	c.machine = func() time.Time { return time.Now().Add(day) }
	near("this machine has jumped ahead", 0)
	if got := c.Since(time.Now().Add(-time.Hour)); (got - time.Hour).Abs() > tolerance+time.Second {
		t.Errorf("%v since an hour ago", got)
	}
	c.machine = func() time.Time { return time.Now().Add(-day) }
	near("this machine has jumped back", -day)
}
