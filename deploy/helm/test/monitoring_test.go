package test

import (
	"strings"
	"testing"

	goyaml "go.yaml.in/yaml/v3"
)

// TestRules renders the alerts: nothing in them is taken for a template, and there are none
// unless they are asked for.
func TestRules(t *testing.T) {
	render := func(args ...string) string {
		out, err := runHelm(t.Context(), append([]string{"template", release, chart, "--namespace=" + namespace}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if strings.Contains(render(), "PrometheusRule") {
		t.Error("the alerts are installed where no operator may be")
	}
	out := render("--set=monitoring.rules.enabled=true", "--set=monitoring.rules.labels.release=prometheus", "--show-only=templates/monitoring.yaml")
	var rule struct {
		Kind     string
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Groups []struct {
				Rules []struct {
					Alert       string
					Annotations map[string]string
				}
			}
		}
	}
	if err := goyaml.Unmarshal([]byte(out), &rule); err != nil {
		t.Fatal(err)
	}
	if rule.Kind != "PrometheusRule" || rule.Metadata.Labels["release"] != "prometheus" || len(rule.Spec.Groups) < 4 {
		t.Fatalf("rendered %s", out)
	}
	if first := rule.Spec.Groups[0].Rules[0]; !strings.Contains(first.Annotations["summary"], "{{ $labels.job }}") {
		t.Errorf("%s says %q", first.Alert, first.Annotations["summary"])
	}
}
