package audit

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/portico-platform/portico/services"
)

const head = "apiVersion: audit.platform.io/v1\nkind: Policy\n"

func parsed(t *testing.T, rules string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(head+rules), "audit.platform.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPolicyRules: the first rule that matches in every respect decides.
func TestPolicyRules(t *testing.T) {
	p := parsed(t, `
rules:
- {level: None, users: [noise]}
- {level: None, nonResourceURLs: [/healthz*, /version]}
- {level: Request, userGroups: [g], verbs: [create, update]}
- {level: RequestResponse, resources: [{group: "", resources: [pods/status, "configmaps/*"]}, {group: apps}], namespaces: [a, b]}
- {level: Request, resources: [{group: "", resources: [pods], resourceNames: [one]}]}
- {level: RequestResponse, resources: [{group: "", resources: ["*/scale"]}]}
- {level: Metadata, resources: [{group: "", resources: ["*"]}]}
`)
	in := func(namespace, resource, subresource string) services.Attributes {
		return services.Attributes{Verb: "get", Namespace: namespace, Version: "v1", Resource: resource, Subresource: subresource}
	}
	named, grouped, noise, apps := in("z", "pods", ""), in("z", "pods", ""), in("a", "pods", "status"), in("b", "deployments", "")
	named.Name = "one"
	grouped.User.Groups, grouped.Verb = []string{"f", "g"}, "create"
	noise.User.Name = "noise"
	apps.Group = "apps"
	elsewhere := apps
	elsewhere.Namespace = "z"
	for name, c := range map[string]struct {
		a    services.Attributes
		want string
	}{
		"user": {noise, "None"}, "path": {services.Attributes{Path: "/healthz/etcd"}, "None"}, "whole path": {services.Attributes{Path: "/version"}, "None"},
		"other path": {services.Attributes{Path: "/version/x"}, "None"}, "group and verb": {grouped, "Request"},
		"subresource": {in("a", "pods", "status"), "RequestResponse"}, "not the resource itself": {in("a", "pods", ""), "Metadata"},
		"any subresource": {in("b", "configmaps", "x"), "RequestResponse"}, "other namespace": {in("z", "pods", "status"), "Metadata"},
		"API group": {apps, "RequestResponse"}, "API group, other namespace": {elsewhere, "None"}, "name": {named, "Request"},
		"subresource of any": {in("z", "things", "scale"), "RequestResponse"},
	} {
		if got := string(p.Rule(c.a).level()); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestPolicyStages: stages are left out by the policy and by the rule; a rule may keep
// managedFields that the policy leaves out.
func TestPolicyStages(t *testing.T) {
	p := parsed(t, `
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: Metadata, verbs: [get], omitStages: [ResponseStarted, Panic], omitManagedFields: false}
- {level: Metadata}
`)
	get, list := p.Rule(services.Attributes{Verb: "get"}), p.Rule(services.Attributes{Verb: "list"})
	for stage, want := range map[string][2]bool{RequestReceived: {false, false}, ResponseStarted: {false, true}, ResponseComplete: {true, true}, Panic: {false, true}} {
		if got := [2]bool{get.Logs(stage), list.Logs(stage)}; got != want {
			t.Errorf("%s: got %v, want %v", stage, got, want)
		}
	}
	if get.config.OmitManagedFields || !list.config.OmitManagedFields {
		t.Error("the rule does not take precedence")
	}
}

// TestPolicyErrors: each error names the field.
func TestPolicyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":        "apiVersion",
		"kind: [": "yaml",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]": "apiVersion",
		"apiVersion: audit.platform.io/v1\nkind: List":                      "kind",
		head:                                  "rules",
		head + "rules: [{}]":                  "rules[0].level",
		head + "rules: [{level: Everything}]": "rules[0].level",
		head + "rules: [{level: None, verb: [get]}]":                                      "verb",
		head + "rules: [{level: None, level: Metadata}]":                                  "level",
		head + "rules: [{level: None, omitStages: [Start]}]":                              "rules[0].omitStages[0]",
		head + "omitStages: [Start]\nrules: [{level: None}]":                              "omitStages[0]",
		head + "rules: [{level: None},{level: None, nonResourceURLs: [healthz]}]":         "rules[1].nonResourceURLs[0]",
		head + "rules: [{level: None, nonResourceURLs: [/a*b]}]":                          "rules[0].nonResourceURLs[0]",
		head + "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]":           "rules[0].nonResourceURLs",
		head + "rules: [{level: None, resources: [{group: rbac/v1}]}]":                    "rules[0].resources.group",
		head + "rules: [{level: None, resources: [{resourceNames: [a]}]}]":                "rules[0].resources.resourceNames",
		head + "rules: [{level: None, users: [" + strings.Repeat("a,", maxPolicy) + "]}]": "larger than",
	} {
		if _, err := ParsePolicy([]byte(text), "audit.platform.io/v1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.90q: got %v, want an error about %s", text, err, want)
		}
	}
}

// TestPolicyReload: a new file counts; an invalid or missing one does not, and is counted
// once.
func TestPolicyReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failures := prometheus.NewCounter(prometheus.CounterOpts{Name: "failures"})
	open := func() (*follower, error) {
		return openPolicy(path, "audit.platform.io/v1", slog.New(slog.DiscardHandler), failures)
	}
	write(head + "rules: [{level: Some}]")
	if _, err := open(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "rules[0].level") {
		t.Fatalf("got %v, want an error with file and field", err)
	}
	write(head + "rules: [{level: Metadata}]")
	f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	level := func() string { return string(f.files.Get().Rule(services.Attributes{}).level()) }
	write(head + "rules: [{level: Request}]")
	if got := level(); got != "Request" {
		t.Errorf("got %s after the reload", got)
	}
	write(head + "rules: [{level: Some}]")
	for range 2 {
		if got := level(); got != "Request" {
			t.Errorf("got %s with an invalid file", got)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := level(); got != "Request" {
		t.Errorf("got %s without a file", got)
	}
	if n := testutil.ToFloat64(failures); n != 1 {
		t.Errorf("%v failures", n)
	}
}
