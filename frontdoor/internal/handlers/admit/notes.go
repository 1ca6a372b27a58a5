package admit

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/warning"
	"github.com/portico-platform/portico/services"
)

const (
	// bypassHeader names the admission services that the request is to skip, separated by
	// commas. Admission checks that the user may.
	bypassHeader = "Portico-Bypass-Admission"
	// maxBypassed bounds the services that one request can skip. Further ones are called.
	maxBypassed = 16
	// maxTimings bounds the entries of Server-Timing: a request may delete many objects.
	maxTimings = 64
)

// bypassed returns the services that a request is to skip.
func bypassed(h http.Header) (names []string) {
	for _, value := range h.Values(bypassHeader) {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" && len(names) < maxBypassed {
				names = append(names, name)
			}
		}
	}
	return names
}

// time records how long admission and its services took, if the client requests it.
func (c *Call) time(took time.Duration, timings []services.Timing) {
	if c.request.Request == nil {
		return
	}
	if value := c.request.Header.Get(request.TimingHeader); value != request.TimingAdmission && value != request.TimingStages {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range append([]services.Timing{{Took: took}}, timings...) {
		if len(c.timings) < maxTimings {
			c.timings = append(c.timings, t)
		}
	}
}

// SendNotes adds all warnings and timings to the headers of a response, which may be an
// error.
func (c *Call) SendNotes(h http.Header) {
	warning.Send(h, c.Warnings()...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.timings {
		entry := fmt.Sprintf("admission;dur=%.3f", float64(t.Took)/float64(time.Millisecond))
		if t.Name != "" {
			entry = fmt.Sprintf("admission-service;desc=%q;dur=%.3f", t.Name, float64(t.Took)/float64(time.Millisecond))
		}
		h.Add("Server-Timing", entry)
	}
}
