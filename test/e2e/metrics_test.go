package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// metricsFile lists all metrics of the suite: the alerts and the dashboard are checked
// against it.
const metricsFile = root + "/docs/reference/metrics.txt"

// TestMetrics scrapes every process of a suite, and the all-in-one: what is listed is there,
// with its labels and in those processes, unless it is marked as shown once it is used, and what is there is
// listed. PORTICO_UPDATE=1 writes the list; PORTICO_METRICS is a folder for what the processes show, which the
// test of the rules of prometheus-adapter reads.
func TestMetrics(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts twelve processes")
	}
	v := vocabulary.K8s()
	s := newSuite(t, v)
	pages := map[string]string{}
	for _, p := range programs() {
		address, err := loopback.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		pages[p.name], p.args = address, append(p.args, "--status-address="+address)
		s.start(t, p)
	}
	c := s.connect(t, "frontdoor")
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	pages["portico"] = address
	for _, c := range []*cluster.Cluster{c, startAllInOne(t, v, "--status-address="+address).Cluster} {
		ok(t, c, cluster.Request{Path: "/api/v1/endpoints"}) // a deprecated type
		ok(t, c, cluster.Request{Path: "/api/v1/pods"})
	}

	content, err := os.ReadFile(metricsFile)
	if err != nil && os.Getenv("PORTICO_UPDATE") == "" {
		t.Fatal(err)
	}
	want, onceUsed := string(content), map[string]string{}
	for line := range strings.Lines(want) {
		if fields := strings.Fields(line); len(fields) == 5 && fields[4] == "used" {
			onceUsed[fields[0]] = line
		}
	}
	found := inventory{}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		eventually(t, name+" answers", func() bool { return found.scrape(name, pages[name]) == nil })
		if found["portico_build_info"] == nil || !found["portico_certificate_expiration_timestamp_seconds"].processes[name] {
			t.Errorf("%s does not say what it is and when its certificates expire", name)
		}
	}
	if os.Getenv("PORTICO_UPDATE") != "" {
		if err := os.WriteFile(filepath.Clean(metricsFile), []byte(found.list(onceUsed)), 0o644); err != nil { //nolint:gosec // no secret
			t.Fatal(err)
		}
		return
	}
	for line := range strings.Lines(want) {
		fields := strings.Fields(line)
		if len(fields) == 0 || onceUsed[fields[0]] != "" {
			continue
		}
		if missing := found.missing(fields); missing != "" {
			t.Errorf("%s: %s", metricsFile, missing)
		}
	}
	for name := range found {
		if !strings.Contains("\n"+want, "\n"+name+" ") {
			t.Errorf("%s does not list %s", metricsFile, name)
		}
	}
}

// inventory is what processes show, by the name of the metric.
type inventory map[string]*metric

type metric struct {
	kind              string
	labels, processes map[string]bool
}

// scrape reads all metrics of a process but those of the Go runtime, which change with it.
func (i inventory) scrape(process, address string) error {
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if folder := os.Getenv("PORTICO_METRICS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, process), text, 0o600); err != nil {
			return err
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return err
	}
	for name, family := range families {
		if strings.HasPrefix(name, "go_") {
			continue
		}
		if i[name] == nil {
			i[name] = &metric{kind: strings.ToLower(family.GetType().String()), labels: map[string]bool{}, processes: map[string]bool{}}
		}
		i[name].processes[process] = true
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				i[name].labels[label.GetName()] = true
			}
		}
	}
	return nil
}

// list returns a line for each metric: name, type, labels, processes; those that are shown once they are used
// are given.
func (i inventory) list(onceUsed map[string]string) string {
	var lines []string
	list := func(set map[string]bool) string {
		if len(set) == 0 {
			return "-"
		}
		return strings.Join(slices.Sorted(maps.Keys(set)), ",")
	}
	for name, m := range i {
		if onceUsed[name] == "" {
			lines = append(lines, fmt.Sprintf("%s %s %s %s\n", name, m.kind, list(m.labels), list(m.processes)))
		}
	}
	lines = slices.AppendSeq(lines, maps.Values(onceUsed))
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// missing returns what processes do not show of a line of the list; empty when they show all.
func (i inventory) missing(fields []string) string {
	if len(fields) != 4 {
		return fmt.Sprintf("%q has no name, type, labels and processes", fields)
	}
	m := i[fields[0]]
	if m == nil || m.kind != fields[1] {
		return fmt.Sprintf("%s, a %s, is shown by no process", fields[0], fields[1])
	}
	for _, label := range strings.Split(fields[2], ",") {
		if label != "-" && !m.labels[label] {
			return fmt.Sprintf("%s has no label %s", fields[0], label)
		}
	}
	for _, process := range strings.Split(fields[3], ",") {
		if !m.processes[process] {
			return fmt.Sprintf("%s is not shown by %s", fields[0], process)
		}
	}
	return ""
}
