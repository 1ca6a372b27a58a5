package admission_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/run"
)

// configuration writes a configuration file with these plugins and returns its flag.
func configuration(t *testing.T, plugins string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admission.yaml")
	content := "apiVersion: apiserver.config.platform.io/v1\nkind: AdmissionConfiguration\nplugins:\n" + plugins
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--admission-control-config-file=" + path
}

const eventLimits = `
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.platform.io/v1alpha1
    kind: Configuration
    limits: [{type: Namespace, qps: 1, burst: 1}]
`

const nodeSelectors = `
- name: PodNodeSelector
  configuration:
    podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: "zone=a", here: "zone=a,own=x", broken: "zone=b"}
`

// TestContractWhenConfigured: a service with a configuration keeps the contract, in one
// process and over gRPC.
func TestContractWhenConfigured(t *testing.T) {
	open := func(t *testing.T) services.Admission {
		return started(t, cluster(t), configuration(t, eventLimits), "--enable-admission-plugins=EventRateLimit")
	}
	kittest.LocalAndRemote(t, contract.Admission, open, func(t *testing.T, open func(*testing.T) services.Admission) {
		contracttest.Admission(t, open, contracttest.AdmissionExample{Admitted: create("here"), Rejected: create("nowhere")})
		a, event := open(t), create("here")
		event.Resource, event.Kind = "events", "Event"
		if _, err := a.Validate(t.Context(), event); err != nil {
			t.Errorf("the first event: %v", err)
		}
		_, err := a.Validate(t.Context(), event)
		if s := services.AsStatus(err); s == nil || s.Code != 429 || s.Reason != services.ReasonTooManyRequests {
			t.Errorf("the second event: %v", err)
		}
	})
}

func TestConfigurationIsRefused(t *testing.T) {
	in := func(plugin, content string) string {
		return fmt.Sprintf("- name: %s\n  configuration: %s\n", plugin, content)
	}
	limits := func(limit string) string {
		return in("EventRateLimit", "{apiVersion: eventratelimit.admission.platform.io/v1alpha1, kind: Configuration, limits: ["+limit+"]}")
	}
	quota := func(limited string) string {
		return in("ResourceQuota", "{apiVersion: apiserver.config.platform.io/v1, kind: ResourceQuotaConfiguration, limitedResources: ["+limited+"]}")
	}
	for name, x := range map[string]struct {
		plugins, enable, want string
	}{
		"a plugin that does not exist":      {"- name: Nothing\n", "", `plugins[0].name: there is no plugin "Nothing"`},
		"a part of the API":                 {"- name: grants\n", "", `there is no plugin "grants"`},
		"a plugin that reads none":          {in("AlwaysDeny", "{a: b}"), "", `plugins[0].name: plugin "AlwaysDeny" reads no configuration`},
		"a plugin that needs one":           {"- name: EventRateLimit\n", "EventRateLimit", "EventRateLimit needs a configuration"},
		"a file that is missing":            {"- {name: EventRateLimit, path: missing.yaml}\n", "", "plugins[0].path: open "},
		"limits of another version":         {in("EventRateLimit", "{apiVersion: v1, kind: Configuration}"), "", "plugins[0].configuration: apiVersion: "},
		"no limits":                         {limits(""), "", "plugins[0].configuration: limits: must not be empty"},
		"a limit of an unknown type":        {limits("{type: Pod, qps: 1, burst: 1}"), "", "limits[0].type"},
		"a limit without a burst":           {limits("{type: User, qps: 1}"), "", "limits[0].burst"},
		"a limit without a rate":            {limits("{type: User, burst: 1}"), "", "limits[0].qps"},
		"a limit with too few buckets":      {limits("{type: User, qps: 1, burst: 1, cacheSize: -1}"), "", "limits[0].cacheSize"},
		"a limit with too many buckets":     {limits("{type: User, qps: 1, burst: 1, cacheSize: 2000000000}"), "", "limits[0].cacheSize"},
		"a limit with an unknown field":     {limits("{type: User, qps: 1, burst: 1, cache: 1}"), "", `unknown field "limits[0].cache"`},
		"a selector that is none":           {in("PodNodeSelector", "{podNodeSelectorPluginConfig: {a: b c}}"), "", "podNodeSelectorPluginConfig[a]"},
		"selectors under another name":      {in("PodNodeSelector", "{selectors: {}}"), "", `unknown field "selectors"`},
		"a default that is invalid":         {in("PodTolerationRestriction", "{apiVersion: podtolerationrestriction.admission.platform.io/v1alpha1, kind: Configuration, default: [{value: x}]}"), "", "default[0].operator"},
		"what is limited, without a type":   {quota("{matchContains: [x]}"), "", "limitedResources[0].resource"},
		"what is limited, by a wrong scope": {quota("{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: Is}]}"), "", "limitedResources[0].matchScopes[0].operator"},
	} {
		args := []string{configuration(t, x.plugins)}
		if x.enable != "" {
			args = append(args, "--enable-admission-plugins="+x.enable)
		}
		_, err := start(t, cluster(t), args...)
		if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), x.want) || x.enable == "" && !strings.Contains(err.Error(), "admission.yaml") {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	if _, err := start(t, cluster(t), "--admission-control-config-file=/missing/file"); !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "/missing/file") {
		t.Errorf("a file that is missing: %v", err)
	}
}

func TestConfiguredNodeSelectors(t *testing.T) {
	c := cluster(t)
	c.Put(t, namespaces, `{metadata: {name: annotated, annotations: {scheduler.alpha.platform.io/node-selector: "disk=fast"}}}`)
	c.Put(t, namespaces, `{metadata: {name: emptied, annotations: {scheduler.alpha.platform.io/node-selector: ""}}}`)
	c.Put(t, namespaces, `{metadata: {name: broken}}`)
	c.Put(t, namespaces, `{metadata: {name: plain}}`)
	a := started(t, c, append(only(), configuration(t, nodeSelectors), "--enable-admission-plugins=PodNodeSelector")...)
	for _, x := range []struct{ namespace, selector, want, refused string }{
		{"plain", `{}`, `{"zone":"a"}`, ""},
		{"plain", `{"zone":"b"}`, "", "pod node label selector conflicts with its namespace node label selector"},
		{"annotated", `{}`, `{"disk":"fast"}`, ""},
		{"emptied", `{"a":"b"}`, "", ""},
		{"here", `{"own":"x"}`, `{"own":"x","zone":"a"}`, ""},
		{"here", `{"own":"y"}`, "", "pod node label selector labels conflict with its namespace whitelist"},
		{"here", `{"other":"x"}`, "", "pod node label selector labels conflict with its namespace whitelist"},
		{"broken", `{}`, "", "pod node label selector labels conflict with its namespace whitelist"},
	} {
		r := createOf("", "pods", `{"spec":{"nodeSelector":`+x.selector+`}}`)
		r.Namespace = x.namespace
		got := mutated(t, a, r, x.refused)
		if want := `{"spec":{"nodeSelector":` + x.want + `}}`; x.refused == "" && x.want != "" && got != want || x.want == "" && got != "" {
			t.Errorf("%s in %s: %s, want %s", x.selector, x.namespace, got, want)
		}
	}
}

// TestConfiguredQuota: what is limited needs a quota.
func TestConfiguredQuota(t *testing.T) {
	a := started(t, cluster(t), configuration(t, `
- name: ResourceQuota
  configuration:
    apiVersion: resourcequota.admission.platform.io/v1beta1
    kind: Configuration
    limitedResources: [{resource: configmaps, matchContains: [configmaps]}]
`))
	if _, err := a.Validate(t.Context(), create("here")); !services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), "insufficient quota to consume: configmaps,count/configmaps") {
		t.Errorf("without a quota: %v", err)
	}
}
