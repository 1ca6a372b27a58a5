package controllers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// component is a running program with what it has logged.
type component struct {
	name string
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (c *component) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(b)
}

// end returns up to the last n bytes of the log.
func (c *component) end(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := c.text.String()
	return said[max(0, len(said)-n):]
}

var (
	// failure matches a line at the level of errors: klog's of Kubernetes, and those of
	// structured loggers.
	failure = regexp.MustCompile(`^[EF]\d{4} |^panic: |"level":"ERROR"|\bERROR\b|level=ERROR`)
	// expected matches what components log at this level beside the original as well, as a
	// run with -original shows: two writers of one object have met; a controller has seen that
	// its cache lacks its own write, and waits; pods have no metrics yet; there is no manifest
	// of metrics.
	expected = regexp.MustCompile(`the object has been modified; please apply your changes to the latest version|` +
		`read version: \d+ is not as new as written version: \d+|` +
		`unable to get metrics for resource cpu: no metrics returned from resource metrics API|did not receive metrics for targeted pods|The manifest file is empty, ignoring`)
	// late matches what a controller logs that deletes a second time what it has deleted, because
	// it looks into its cache microseconds after the response. docs/performance.md has the time
	// until the event arrives, beside the original.
	late = regexp.MustCompile(`(delete unused generated claim|Error deleting job from cronjob).* not found`)
)

// varying is what differs between lines of one class.
var varying = regexp.MustCompile(`[EF]\d{4} [\d:.]+ +\d+ |\d+|-[0-9a-z]{5}\b|-[0-9a-f]{8,10}\b|" logger=.*`)

// classes returns the number of lines of each class, without what varies, in order.
func classes(lines []string) (list []string) {
	counts := map[string]int{}
	for _, line := range lines {
		counts[varying.ReplaceAllString(line, "*")]++
	}
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%5d %s", counts[class], class))
	}
	return list
}

// failures returns the lines at the level of errors: those that the original would not cause,
// and those that it causes as well, or that are late.
func (c *component) failures() (own, others []string) {
	for line := range strings.SplitSeq(c.end(1<<30), "\n") {
		switch {
		case !failure.MatchString(line):
		case expected.MatchString(line), late.MatchString(line):
			others = append(others, line)
		default:
			own = append(own, line)
		}
	}
	return own, others
}
