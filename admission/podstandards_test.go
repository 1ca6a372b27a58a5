package admission_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

const (
	plainPod   = `{"containers":[{"name":"a","image":"i"}]}`
	hostPID    = `{"hostPID":true,"containers":[{"name":"a","image":"i"}]}`
	restricted = `{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"a","image":"i",` +
		`"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}`
)

// standard puts a namespace with labels of the Pod Security Standards, as in "enforce: baseline".
func standard(t *testing.T, c *fake.Cluster, name string, labels ...string) {
	t.Helper()
	for i, label := range labels {
		labels[i] = "pod-security.platform.io/" + label
	}
	c.Put(t, core("namespaces"), `{metadata: {name: `+name+`, labels: {`+strings.Join(labels, ", ")+`}}}`)
}

// within is a request in another namespace.
func within(namespace string, r services.AdmissionRequest) services.AdmissionRequest {
	r.Namespace = namespace
	return r
}

func podWith(spec string) services.AdmissionRequest {
	return createOf("", "pods", `{"metadata":{"name":"c"},"spec":`+spec+`}`)
}

func standards(t *testing.T) *fake.Cluster {
	c := cluster(t)
	standard(t, c, "enforced", "enforce: baseline")
	standard(t, c, "strict", "enforce: restricted", "enforce-version: v1.30", "warn: privileged")
	standard(t, c, "watched", "audit: restricted", "warn: baseline")
	standard(t, c, "wrong", "enforce: basic")
	standard(t, c, "exempt", "enforce: restricted")
	standard(t, c, "free")
	return c
}

// TestPodSecurity: pods below the level of their namespace are refused, audited or warned about.
func TestPodSecurity(t *testing.T) {
	kittest.LocalAndRemote(t, contract.Admission, func(t *testing.T) services.Admission {
		return started(t, standards(t), append(alone("PodSecurity"), emulate136)...)
	}, func(t *testing.T, start func(*testing.T) services.Admission) {
		a := start(t)
		template := func(group, resource, object string) services.AdmissionRequest {
			return within("enforced", createOf(group, resource, strings.ReplaceAll(object, "POD", hostPID)))
		}
		resized := within("enforced", updateOf("pods", `{"spec":`+hostPID+`}`, `{"spec":`+strings.ReplaceAll(hostPID, `"i"`, `"other"`)+`}`))
		debugged := within("enforced", updateOf("pods", `{"spec":`+hostPID+`}`, `{"spec":`+strings.Replace(hostPID, `"containers"`, `"ephemeralContainers":[{"name":"d","image":"i"}],"containers"`, 1)+`}`))
		debugged.Subresource = "ephemeralcontainers"
		status := within("enforced", updateOf("pods", `{"spec":`+plainPod+`}`, `{"spec":`+hostPID+`}`))
		status.Subresource = "status"
		const (
			host    = `violates PodSecurity "baseline:latest": host namespaces (hostPID=true)`
			enforce = "enforce-policy=baseline:latest"
			audited = `audit-violations=would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)`
			warned  = `would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)`
		)
		for name, x := range map[string]struct {
			request services.AdmissionRequest
			refused string
			notes   []string // annotations
			warning string
		}{
			"no labels":                     {within("free", podWith(hostPID)), "", []string{"enforce-policy=privileged:latest"}, ""},
			"allowed":                       {within("enforced", podWith(plainPod)), "", []string{enforce}, ""},
			"refused":                       {within("enforced", podWith(hostPID)), host, []string{enforce}, ""},
			"a version":                     {within("strict", podWith(plainPod)), `violates PodSecurity "restricted:v1.30": allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)`, []string{"enforce-policy=restricted:v1.30"}, ""},
			"restricted":                    {within("strict", podWith(restricted)), "", []string{"enforce-policy=restricted:v1.30"}, ""},
			"audited and warned":            {within("watched", podWith(hostPID)), "", []string{"enforce-policy=privileged:latest", `audit-violations=would violate PodSecurity "restricted:latest": host namespaces (hostPID=true), allowPrivilegeEscalation`}, warned},
			"audited alone":                 {within("watched", podWith(plainPod)), "", []string{"enforce-policy=privileged:latest", `audit-violations=would violate PodSecurity "restricted:latest": allowPrivilegeEscalation`}, ""},
			"a label that is wrong":         {within("wrong", podWith(plainPod)), `violates PodSecurity "restricted:latest"`, []string{"enforce-policy=restricted:latest", "error=Failed to parse policy: metadata.labels[pod-security.platform.io/enforce]"}, ""},
			"no namespace":                  {within("none", podWith(plainPod)), `namespaces "none" not found`, nil, ""},
			"another image":                 {resized, host, []string{enforce}, ""},
			"an ephemeral container":        {debugged, host, []string{enforce}, ""},
			"a label of the pod":            {within("enforced", updateOf("pods", `{"spec":`+hostPID+`}`, `{"metadata":{"labels":{"a":"b"}},"spec":`+hostPID+`}`)), "", nil, ""},
			"its status":                    {status, "", nil, ""},
			"a Deployment":                  {template("apps", "deployments", `{"spec":{"template":{"spec":POD}}}`), "", nil, warned},
			"a CronJob":                     {template("batch", "cronjobs", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":POD}}}}}`), "", nil, warned},
			"a PodTemplate":                 {template("", "podtemplates", `{"template":{"spec":POD}}`), "", nil, warned},
			"no template":                   {template("", "replicationcontrollers", `{"spec":{}}`), "", nil, ""},
			"of a namespace without labels": {within("free", createOf("apps", "deployments", `{"spec":{"template":{"spec":`+hostPID+`}}}`)), "", nil, ""},
			"audited template":              {within("watched", createOf("apps", "deployments", `{"spec":{"template":{"spec":`+hostPID+`}}}`)), "", []string{`audit-violations=would violate PodSecurity "restricted:latest"`}, warned},
		} {
			got, err := a.Validate(t.Context(), x.request)
			if x.refused == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), x.refused) {
				t.Errorf("%s: %v, want %q", name, err, x.refused)
			}
			if err == nil {
				if strings.Join(got.Warnings, "; ") != x.warning {
					t.Errorf("%s: warnings %q, want %q", name, got.Warnings, x.warning)
				}
			}
			if len(got.AuditAnnotations) != len(x.notes) && err == nil {
				t.Errorf("%s: annotations %v, want %q", name, got.AuditAnnotations, x.notes)
			}
			for _, note := range x.notes {
				key, value, _ := strings.Cut(note, "=")
				if err == nil && !strings.HasPrefix(got.AuditAnnotations["pod-security.platform.io/"+key], value) {
					t.Errorf("%s: annotations %v, want %q", name, got.AuditAnnotations, note)
				}
			}
		}
	})
	earlier := started(t, standards(t), only()...)
	if _, err := earlier.Validate(t.Context(), within("enforced", podWith(hostPID))); err != nil {
		t.Errorf("at 1.21: %v", err)
	}
}

// TestPodSecurityOfNamespaces: unknown levels are refused, and a stricter one warns of the pods that violate it.
func TestPodSecurityOfNamespaces(t *testing.T) {
	c := standards(t)
	put := func(name, rest string) {
		c.Put(t, core("pods"), `{metadata: {namespace: full, name: `+name+`, ownerReferences: [`+rest+`]}, spec: `+hostPID+`}`)
	}
	put("b", "")
	put("a", "{uid: u, controller: true, kind: ReplicaSet, name: r, apiVersion: apps/v1}")
	put("c", "{uid: u, controller: true, kind: ReplicaSet, name: r, apiVersion: apps/v1}")
	c.Put(t, core("pods"), `{metadata: {namespace: full, name: fine}, spec: `+plainPod+`}`)
	c.Put(t, core("pods"), `{metadata: {namespace: elsewhere, name: not}, spec: `+hostPID+`}`)
	a := started(t, c, append(alone("PodSecurity"), emulate136)...)
	labelled := func(labels string) string { return `{"metadata":{"name":"full","labels":{` + labels + `}}}` }
	const enforce = `"pod-security.platform.io/enforce":`
	changed := func(was, is string) services.AdmissionRequest {
		r := updateOf("namespaces", labelled(was), labelled(is))
		r.Name, r.Namespace, r.Kind = "full", "full", "Namespace"
		return r
	}
	created := createOf("", "namespaces", labelled(enforce+`"basic"`))
	created.Kind = "Namespace"
	const existing = `existing pods in namespace "full" violate the new PodSecurity enforce level "baseline:latest"`
	for name, x := range map[string]struct {
		request  services.AdmissionRequest
		refused  string
		warnings []string
	}{
		"unknown":           {created, `metadata.labels[pod-security.platform.io/enforce]: Invalid value: "basic": must be one of privileged, baseline, restricted`, nil},
		"unknown now":       {changed("", enforce+`"basic"`), `must be one of`, nil},
		"unknown before":    {changed(enforce+`"basic"`, `"a":"b",`+enforce+`"basic"`), "", nil},
		"known again":       {changed(enforce+`"basic"`, ""), "", nil},
		"unknown version":   {changed("", `"pod-security.platform.io/warn-version":"1.30"`), `must be "latest" or "v1.x"`, nil},
		"stricter":          {changed("", enforce+`"baseline"`), "", []string{existing, "a (and 2 other pods): host namespaces"}},
		"the same":          {changed(enforce+`"baseline"`, `"a":"b",`+enforce+`"baseline"`), "", nil},
		"less strict":       {changed(enforce+`"restricted"`, enforce+`"baseline"`), "", nil},
		"only warned about": {changed("", `"pod-security.platform.io/warn":"baseline"`), "", nil},
	} {
		got, err := a.Validate(t.Context(), x.request)
		if x.refused != "" {
			if !services.IsReason(err, services.ReasonInvalid) || !strings.Contains(err.Error(), x.refused) {
				t.Errorf("%s: %v, want %s", name, err, x.refused)
			}
			continue
		}
		if err != nil || !slices.Equal(got.Warnings, x.warnings) {
			t.Errorf("%s: %q, %v, want %q", name, got.Warnings, err, x.warnings)
		}
	}
}

// TestPodSecurityConfiguration: the configuration has levels for namespaces without labels, and exempts.
func TestPodSecurityConfiguration(t *testing.T) {
	write := func(document string) []string {
		return append(alone("PodSecurity"), emulate136, configuration(t, "- name: PodSecurity\n  configuration: "+document))
	}
	const head = `{apiVersion: pod-security.admission.config.platform.io/v1, kind: PodSecurityConfiguration, `
	c := standards(t)
	c.Put(t, core("namespaces"), `{metadata: {name: free}}`)
	a := started(t, c, write(head+`defaults: {enforce: restricted, enforce-version: v1.20}, exemptions: {usernames: [root], namespaces: [exempt], runtimeClasses: [sandbox]}}`)...)
	byRoot := within("free", podWith(hostPID))
	byRoot.User.Name = "root"
	for name, x := range map[string]struct {
		request services.AdmissionRequest
		refused string
		exempt  string
	}{
		"default":        {within("free", podWith(hostPID)), `violates PodSecurity "restricted:v1.20"`, ""},
		"label":          {within("enforced", podWith(plainPod)), "violates", ""}, // the version stays that of the default
		"of a user":      {byRoot, "", "user"},
		"of a namespace": {within("exempt", podWith(hostPID)), "", "namespace"},
		"of a class":     {within("free", podWith(`{"runtimeClassName":"sandbox",`+hostPID[1:])), "", "runtimeClass"},
	} {
		got, err := a.Validate(t.Context(), x.request)
		if name == "label" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if x.refused == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), x.refused) || got.AuditAnnotations["pod-security.platform.io/exempt"] != x.exempt {
			t.Errorf("%s: %v, %v", name, err, got.AuditAnnotations)
		}
	}
	labelled := createOf("", "namespaces", `{"metadata":{"name":"exempt","labels":{"pod-security.platform.io/enforce":"baseline"}}}`)
	labelled.Name = "exempt"
	got, err := a.Validate(t.Context(), labelled)
	if want := `namespace "exempt" is exempt from Pod Security, and the policy (enforce=baseline:v1.20) will be ignored`; err != nil || !slices.Equal(got.Warnings, []string{want}) {
		t.Errorf("labels of an exempt namespace: %q, %v", got.Warnings, err)
	}
	for document, want := range map[string]string{
		head + `defaults: {enforce: basic}}`:               `defaults.enforce: "basic" must be one of`,
		head + `defaults: {audit-version: "1.2"}}`:         `defaults.audit-version: "1.2" must be`,
		head + `exemptions: {namespaces: [a, a]}}`:         `exemptions.namespaces[1]: "a" is empty or duplicated`,
		head + `exemptions: {users: [a]}}`:                 `unknown field "exemptions.users"`,
		`{apiVersion: v1, kind: PodSecurityConfiguration}`: "pod-security.admission.config.platform.io/v1",
	} {
		if _, err := start(t, standards(t), write(document)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
	}
}
