// Package test parses the alerts and the dashboard as Prometheus does, and compares the metrics
// and labels that they name with those that the suite has.
package test

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// targetLabels are labels that Prometheus itself adds.
var targetLabels = []string{"job", "instance", "namespace", "pod"}

// metrics are the labels of each series that the suite has, from the list that the end-to-end
// tests check.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/reference/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	// Those of etcd are its own; store/embedded tests that it has them.
	known := map[string][]string{"up": nil, "etcd_mvcc_db_total_size_in_bytes": nil, "etcd_server_quota_backend_bytes": nil}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		name, kind, names := fields[0], fields[1], strings.Split(fields[2], ",")
		if kind == "histogram" {
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = append([]string{"le"}, names...), names, names
		} else {
			known[name] = names
		}
	}
	return known
}

// check returns what an expression names that is not there.
func check(expr string, known map[string][]string) []string {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	selected := slices.Clone(targetLabels)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		names, there := known[s.Name]
		if !there {
			wrong = append(wrong, s.Name+" does not exist")
			return nil
		}
		selected = append(selected, names...)
		for _, m := range s.LabelMatchers {
			if m.Name != labels.MetricName && !slices.Contains(append(slices.Clone(targetLabels), names...), m.Name) {
				wrong = append(wrong, s.Name+" has no label "+m.Name)
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if a, ok := node.(*parser.AggregateExpr); ok {
			for _, name := range a.Grouping {
				if !slices.Contains(selected, name) {
					wrong = append(wrong, "groups by "+name+", which no series has")
				}
			}
		}
		return nil
	})
	return wrong
}

// TestCheck looks for what the other tests have to find.
func TestCheck(t *testing.T) {
	known := map[string][]string{"a_total": {"x"}, "b_bucket": {"le", "y"}}
	for expr, want := range map[string]string{
		`rate(a_total{x="1",job="j"}[5m])`: "",
		`sum by (le, y) (b_bucket)`:        "",
		`c_total`:                          "c_total does not exist",
		`a_total{y="1"}`:                   "a_total has no label y",
		`sum by (z) (a_total)`:             "groups by z",
		`rate(a_total)`:                    "expected type range vector",
		`a_total{`:                         "unexpected end",
	} {
		if got := strings.Join(check(expr, known), "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

func TestAlerts(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../rules.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	guide, err := os.ReadFile("../../../docs/operations/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	known, named, seen := metrics(t), regexp.MustCompile(`(?m)^\| (Portico\w+) \|`).FindAllStringSubmatch(string(guide), -1), 0
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			seen++
			for _, wrong := range check(rule.Expr, known) {
				t.Errorf("%s: %s", rule.Alert, wrong)
			}
			if rule.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
				t.Errorf("%s: needs a summary and a severity", rule.Alert)
			}
			if !slices.ContainsFunc(named, func(n []string) bool { return n[1] == rule.Alert }) {
				t.Errorf("docs/operations/alerts.md does not say what %s means", rule.Alert)
			}
		}
	}
	if seen < 20 || seen != len(named) {
		t.Errorf("%d alerts, and the guide has %d", seen, len(named))
	}
}

// TestChart compares the copy that the Helm chart installs.
func TestChart(t *testing.T) {
	var content [2]string
	for i, file := range []string{"../rules.yaml", "../../helm/portico/files/rules.yaml"} {
		read, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content[i] = string(read)
	}
	if content[0] != content[1] {
		t.Error("copy deploy/monitoring/rules.yaml to deploy/helm/portico/files")
	}
}

func TestDashboard(t *testing.T) {
	content, err := os.ReadFile("../dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	known, queries, ids := metrics(t), 0, map[int]bool{}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$namespace", ".*")
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("%s: its id is used twice, or it is too wide", panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			queries++
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: an unknown variable in %s", panel.Title, target.Expr)
			}
			for _, wrong := range check(expr, known) {
				t.Errorf("%s: %s", panel.Title, wrong)
			}
		}
	}
	if queries < 20 {
		t.Errorf("only %d queries", queries)
	}
}
