package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/portico-platform/portico/tools/lint/metricnames"
)

// metricsFile lists all metrics of the suite.
const metricsFile = "docs/reference/metrics.txt"

func metricRules() []Rule {
	return []Rule{{"every metric is listed",
		"add a line to " + metricsFile + ": name, type, labels, processes, and used if it is not shown before it was used or a flag turns it on", checkMetrics}}
}

// checkMetrics finds names of metrics in the source that the list does not have.
func checkMetrics(w *Workspace) []Finding {
	list, _ := os.ReadFile(filepath.Join(w.root, metricsFile)) // without it all are missing
	return w.eachFile(func(f *File) (found []Finding) {
		for n, pattern := range metricnames.Patterns(f.AST) {
			if listed := regexp.MustCompile("(?m)^" + pattern + " "); !listed.Match(list) {
				found = append(found, Finding{w.at(f, n), fmt.Sprintf("has the metric %s", pattern)})
			}
		}
		return found
	})
}
