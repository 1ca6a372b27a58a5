package admission_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

const clusterTolerations = `
- name: PodTolerationRestriction
  configuration:
    apiVersion: podtolerationrestriction.admission.platform.io/v1alpha1
    kind: Configuration
    default: [{key: cluster, operator: Exists}]
    whitelist: [{key: cluster, operator: Exists}, {key: node.platform.io/memory-pressure, operator: Exists}]
`

func TestPodTolerationRestriction(t *testing.T) {
	c := cluster(t)
	const defaults, whitelist = "scheduler.alpha.platform.io/defaultTolerations", "scheduler.alpha.platform.io/tolerationsWhitelist"
	for name, annotations := range map[string]string{
		"given":   defaults + `: '[{"key":"own","operator":"Exists"}]', ` + whitelist + `: '[{"operator":"Exists"}]'`,
		"emptied": defaults + `: "", ` + whitelist + `: ""`,
		"strict":  defaults + `: '[{"key":"own","operator":"Exists"}]', ` + whitelist + `: '[{"key":"a","value":"x"}]'`,
		"broken":  defaults + `: "["`,
	} {
		c.Put(t, namespaces, `{metadata: {name: `+name+`, annotations: {`+annotations+`}}}`)
	}
	configured := started(t, c, append(alone("PodTolerationRestriction"), configuration(t, clusterTolerations))...)
	plain := started(t, c, alone("PodTolerationRestriction")...)
	const pressure = `{"effect":"NoSchedule","key":"node.platform.io/memory-pressure","operator":"Exists"}`
	const busy = `"containers":[{"resources":{"limits":{"memory":"1Gi"}}}]`
	const conflict = "pod tolerations (possibly merged with namespace default tolerations) conflict with its "
	for name, x := range map[string]struct {
		admission       services.Admission
		namespace, spec string
		want            string // the tolerations; empty: unchanged
		refused         string
	}{
		"nothing configured":     {plain, "here", `{}`, "", ""},
		"a busy pod":             {plain, "here", `{` + busy + `}`, `[` + pressure + `]`, ""},
		"zero is not busy":       {plain, "here", `{"containers":[{"resources":{"requests":{"cpu":"0"}}}]}`, "", ""},
		"the cluster's":          {configured, "here", `{}`, `[{"key":"cluster","operator":"Exists"}]`, ""},
		"the namespace's":        {configured, "given", `{}`, `[{"key":"own","operator":"Exists"}]`, ""},
		"both":                   {configured, "given", `{"tolerations":[{"key":"a","operator":"Equal","value":"x"}],` + busy + `}`, `[{"key":"a","operator":"Equal","value":"x"},{"key":"own","operator":"Exists"},` + pressure + `]`, ""},
		"one that is covered":    {configured, "given", `{"tolerations":[{"key":"own","operator":"Equal","value":"x"}]}`, `[{"key":"own","operator":"Exists"}]`, ""},
		"one that covers":        {configured, "given", `{"tolerations":[{"operator":"Exists"}]}`, "", ""},
		"emptied":                {configured, "emptied", `{"tolerations":[{"key":"z"}]}`, "", ""},
		"not in the cluster's":   {configured, "here", `{"tolerations":[{"key":"z","operator":"Exists"}]}`, "", conflict + "cluster whitelist"},
		"not in the namespace's": {configured, "strict", `{"tolerations":[{"key":"a","operator":"Equal","value":"x"}]}`, "", conflict + "namespace whitelist"},
		"not readable":           {configured, "broken", `{}`, "", "is not readable"},
		"a bad list":             {configured, "here", `{"tolerations":"x"}`, "", "spec.tolerations is not readable"},
		"a missing namespace":    {configured, "none", `{}`, "", `namespaces "none" not found`},
	} {
		r := in(x.namespace, createOf("", "pods", `{"spec":`+x.spec+`}`))
		got, err := x.admission.Mutate(t.Context(), r)
		switch {
		case x.refused != "" && (err == nil || !strings.Contains(err.Error(), x.refused)), x.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case x.want == "" && got.Object != nil, x.want != "" && !strings.Contains(string(got.Object), `"tolerations":`+x.want):
			t.Errorf("%s: %s, want %s", name, got.Object, x.want)
		}
		if strings.HasPrefix(x.refused, conflict) && services.AsStatus(err).Code != 500 {
			t.Errorf("%s: code %d", name, services.AsStatus(err).Code)
		}
	}
	// Later writers, such as webhooks, are held to the whitelist as well, and updates get
	// no defaults.
	late := in("here", createOf("", "pods", `{"spec":{"tolerations":[{"key":"z"}]}}`))
	if _, err := configured.Validate(t.Context(), late); err == nil || !strings.Contains(err.Error(), conflict) {
		t.Errorf("at the end: %v", err)
	}
	update := in("here", updateOf("pods", `{"spec":{}}`, `{"spec":{}}`))
	if got, err := configured.Mutate(t.Context(), update); err != nil || got.Object != nil {
		t.Errorf("an update: %s, %v", got.Object, err)
	}
}
