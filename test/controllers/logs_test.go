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
	// expected matches what components log at this level beside the original as well. The numbers
	// are of ten minutes with -original, in which 327 rollouts changed ReplicaSets about 6,200 times, and
	// 163 claims were made; docs/operations/controllers.md has those of Portico.
	expected = regexp.MustCompile(strings.Join([]string{
		// Two writers have met, or the cache lacks the previous write: 170 for a disruption budget, 3 for a CronJob.
		`the object has been modified; please apply your changes to the latest version`,
		// A controller has seen that its cache lacks its own write, and waits: 830 for ReplicaSets, 2 for jobs.
		`read version: \d+ is not as new as written version: \d+`,
		// A controller deletes a claim again that its cache still has: 31.
		`delete unused generated claim .* not found`,
		// The same for the jobs of a CronJob, by the same cause. It is rare: none; ten minutes of Portico had one.
		`Error deleting job from cronjob.* not found`,
		// Pods have no metrics yet: 25 and 1.
		`unable to get metrics for resource cpu: no metrics returned from resource metrics API`,
		`did not receive metrics for targeted pods`,
		// There is no manifest of metrics: 1 for each program.
		`The manifest file is empty, ignoring`,
	}, "|"))
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
// and those that it causes as well.
func (c *component) failures() (own, others []string) {
	for line := range strings.SplitSeq(c.end(1<<30), "\n") {
		switch {
		case !failure.MatchString(line):
		case expected.MatchString(line):
			others = append(others, line)
		default:
			own = append(own, line)
		}
	}
	return own, others
}
