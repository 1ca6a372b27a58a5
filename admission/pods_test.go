package admission_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// only returns the flag that turns off all plugins for pods except the named ones.
func only(names ...string) []string {
	off := []string{"TaintNodesByCondition", "DefaultTolerationSeconds", "Priority", "ServiceAccount", "LimitRanger", "RuntimeClass"}
	var disabled []string
	for _, name := range off {
		if !strings.Contains(strings.Join(names, ","), name) {
			disabled = append(disabled, name)
		}
	}
	return []string{"--disable-admission-plugins=" + strings.Join(disabled, ",")}
}

// mutated returns the mutated object, and checks that validation then succeeds, or is
// forbidden with a message that contains refused.
func mutated(t *testing.T, a services.Admission, r services.AdmissionRequest, refused string) string {
	t.Helper()
	got, err := a.Mutate(t.Context(), r)
	if err == nil {
		if got.Object != nil {
			r.Object = got.Object
		}
		_, err = a.Validate(t.Context(), r)
	}
	switch {
	case refused == "" && err != nil:
		t.Errorf("%s: %v", r.Object, err)
	case refused != "" && (!services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), refused)):
		t.Errorf("%s: got %v, want %q", r.Object, err, refused)
	}
	return string(got.Object)
}

func core(plural string) resource.GroupResource { return resource.GroupResource{Resource: plural} }

func TestServiceAccount(t *testing.T) {
	c := cluster(t)
	accounts := core("serviceaccounts")
	c.Put(t, accounts, `{metadata: {name: quiet, namespace: here}, automountServiceAccountToken: false, imagePullSecrets: [{name: pull}]}`)
	c.Put(t, accounts, `{metadata: {name: strict, namespace: here, annotations: {platform.io/enforce-mountable-secrets: "True"}},
		automountServiceAccountToken: false, secrets: [{name: mine}], imagePullSecrets: [{name: pull}]}`)
	a := started(t, c, only("ServiceAccount")...)
	timer := time.AfterFunc(50*time.Millisecond, func() { c.Put(t, accounts, `{metadata: {name: default, namespace: here}}`) })
	defer timer.Stop()

	got := mutated(t, a, createOf("", "pods", `{"spec":{"containers":[{},{"volumeMounts":[{"mountPath":"/var/run/secrets/platform.io/serviceaccount","name":"own"}]}]}}`), "")
	volume := regexp.MustCompile(`platform-api-access-\w{5}`)
	want := `{"spec":{"containers":[{"volumeMounts":[{"mountPath":"/var/run/secrets/platform.io/serviceaccount","name":"V","readOnly":true}]},` +
		`{"volumeMounts":[{"mountPath":"/var/run/secrets/platform.io/serviceaccount","name":"own"}]}],"serviceAccountName":"default",` +
		`"volumes":[{"name":"V","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},` +
		`{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"platform-root-ca.crt"}},` +
		`{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]}}`
	if got = volume.ReplaceAllString(got, "V"); got != want {
		t.Errorf("a pod without an account:\n%s, want\n%s", got, want)
	}
	for _, x := range []struct{ pod, want, refused string }{
		{`{"spec":{"serviceAccountName":"quiet"}}`, `{"spec":{"imagePullSecrets":[{"name":"pull"}],"serviceAccountName":"quiet"}}`, ""},
		{`{"spec":{"serviceAccountName":"missing"}}`, ``, `serviceaccount "missing" not found`},
		{`{"metadata":{"annotations":{"platform.io/config.mirror":"x"}},"spec":{}}`, ``, ""},
		{`{"metadata":{"annotations":{"platform.io/config.mirror":"x"}},"spec":{"serviceAccountName":"quiet"}}`, ``, "mirror pod"},
		{`{"metadata":{"annotations":{"platform.io/config.mirror":"x"}},"spec":{"volumes":[{"csi":{"nodePublishSecretRef":{"name":"s"}}}]}}`, ``, "may not reference secrets"},
		{`{"metadata":{"annotations":{"platform.io/config.mirror":"x"}},"spec":{"volumes":[{"projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]}}`, ``, "ServiceAccountToken volume projections"},
		{`{"spec":{"serviceAccountName":"strict","volumes":[{"azureFile":{"secretName":"driver"}}]}}`, `*`, ""},
		{`{"spec":{"serviceAccountName":"strict","volumes":[{"projected":{"sources":[{"secret":{"name":"pull"}}]}}]}}`, `*`, `references secret "pull"`},
		{`{"spec":{"serviceAccountName":"strict","imagePullSecrets":[{"name":"pull"}],"volumes":[{"secret":{"secretName":"mine"}}]}}`, ``, ""},
		{`{"spec":{"serviceAccountName":"strict","volumes":[{"secret":{"secretName":"pull"}}]}}`, `*`, `references secret "pull"`},
		{`{"spec":{"serviceAccountName":"strict","containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"other"}}}]}]}}`, `*`, `spec.containers.env references secret "other"`},
	} {
		if got := mutated(t, a, createOf("", "pods", x.pod), x.refused); got != x.want && x.want != "*" {
			t.Errorf("%s: %s, want %s", x.pod, got, x.want)
		}
	}
	ephemeral := func(secret string) services.AdmissionRequest {
		r := createOf("", "pods", `{"spec":{"serviceAccountName":"strict","ephemeralContainers":[{"envFrom":[{"secretRef":{"name":"`+secret+`"}}]}]}}`)
		r.Operation, r.Subresource = services.OperationUpdate, "ephemeralcontainers"
		return r
	}
	for secret, want := range map[string]bool{"mine": true, "other": false} {
		if _, err := a.Validate(t.Context(), ephemeral(secret)); want != (err == nil) || !want && !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("an ephemeral container with the secret %s: %v", secret, err)
		}
	}
}

func TestLimitRanger(t *testing.T) {
	c := cluster(t)
	c.Put(t, core("limitranges"), `{metadata: {name: l, namespace: here}, spec: {limits: [
		{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}, max: {cpu: 1}, maxLimitRequestRatio: {cpu: 10}},
		{type: Pod, max: {memory: 2Gi}},
		{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 5Gi}}]}}`)
	a := started(t, c, only("LimitRanger")...)
	memory := `"limits":{"memory":"1Gi"}`
	got := mutated(t, a, createOf("", "pods", `{"metadata":{},"spec":{"containers":[{"name":"a","resources":{`+memory+`}}]}}`), "")
	want := `{"metadata":{"annotations":{"platform.io/limit-ranger":"LimitRanger plugin set: cpu request for container a; cpu limit for container a"}},` +
		`"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"100m"}}}]}}`
	if got != want {
		t.Errorf("a pod without requests:\n%s, want\n%s", got, want)
	}
	for _, x := range []struct{ kind, object, refused string }{
		{"pods", `{"spec":{"containers":[{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2","memory":"1Gi"}}}]}}`, "maximum cpu usage per Container is 1, but limit is 2"},
		{"pods", `{"spec":{"containers":[{"resources":{"requests":{"cpu":"10m"},"limits":{"cpu":"500m","memory":"1Gi"}}}]}}`, "ratio"},
		{"pods", `{"spec":{"containers":[{"resources":{` + memory + `}},{"resources":{"limits":{"memory":"1025Mi"}}}]}}`, "maximum memory usage per Pod is 2Gi, but limit is 2049Mi"},
		{"pods", `{"spec":{"containers":[{"resources":{` + memory + `}},{}]}}`, "maximum memory usage per Pod is 2Gi.  No limit is specified"},
		{"pods", `{"spec":{"containers":[{"resources":{` + memory + `}}],"initContainers":[{"resources":{"requests":{"cpu":"3"},"limits":{"cpu":"3","memory":"3Gi"}}}]}}`,
			"[maximum cpu usage per Container is 1, but limit is 3, maximum memory usage per Pod is 2Gi, but limit is 3Gi]"},
		{"pods", `{"spec":{"containers":[{"resources":{}}],"initContainers":[{"resources":{"limits":{"cpu":"1","memory":"3Gi"}}}]}}`,
			"maximum memory usage per Pod is 2Gi, but limit is 3Gi"},
		{"persistentvolumeclaims", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`, ""},
		{"persistentvolumeclaims", `{"spec":{"resources":{"requests":{"storage":"6Gi"}}}}`, "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"},
		{"persistentvolumeclaims", `{"spec":{"resources":{"requests":{"storage":"1"}}}}`, "minimum storage usage"},
	} {
		r := createOf("", x.kind, x.object)
		if _, err := a.Validate(t.Context(), r); x.kind != "pods" && (err != nil) != (x.refused != "") {
			t.Errorf("%s: %v", x.object, err)
		}
		mutated(t, a, r, x.refused)
	}
}

// TestLimitsOfPods: from release 1.36 on, the limits of sidecars add up, a pod's own resources count for it,
// and a container without a limit does not take that of the pod away.
func TestLimitsOfPods(t *testing.T) {
	c := cluster(t)
	c.Put(t, core("limitranges"), `{metadata: {name: l, namespace: here}, spec: {limits: [{type: Pod, max: {memory: 2Gi}}]}}`)
	a, earlier := started(t, c, append(only("LimitRanger"), emulate136)...), started(t, c, only("LimitRanger")...)
	limits := func(memory string) string { return `"resources":{"limits":{"memory":"` + memory + `"}}` }
	sidecar := func(memory string) string {
		return `"initContainers":[{"restartPolicy":"Always",` + limits(memory) + `}]`
	}
	const missing = "maximum memory usage per Pod is 2Gi.  No limit is specified"
	for _, x := range []struct{ spec, refused, earlier string }{
		{`"containers":[{` + limits("1Gi") + `}],` + sidecar("1Gi"), "", ""},
		{`"containers":[{` + limits("1Gi") + `}],` + sidecar("1025Mi"), "maximum memory usage per Pod is 2Gi, but limit is 2049Mi", ""},
		{`"containers":[{` + limits("1Gi") + `},{}]`, "", missing},
		{`"containers":[{}]`, missing, missing},
		{limits("2Gi") + `,"containers":[{}]`, "", missing},
		{limits("3Gi") + `,"containers":[{` + limits("1Gi") + `}]`, "maximum memory usage per Pod is 2Gi, but limit is 3Gi", ""},
		{`"overhead":{"memory":"9Gi"},"containers":[{` + limits("2Gi") + `}]`, "", ""},
	} {
		r := createOf("", "pods", `{"spec":{`+x.spec+`}}`)
		mutated(t, a, r, x.refused)
		mutated(t, earlier, r, x.earlier)
	}
}

// TestLimitsOfResizes: from release 1.36 on, a resize is kept within the bounds too, and gets the
// defaults. What is being deleted may be written whatever the bounds are.
func TestLimitsOfResizes(t *testing.T) {
	c := cluster(t)
	c.Put(t, core("limitranges"), `{metadata: {name: l, namespace: here}, spec: {limits: [{type: Container, defaultRequest: {memory: 1Mi}, max: {cpu: 1}},
		{type: PersistentVolumeClaim, max: {storage: 5Gi}}]}}`)
	a, earlier := started(t, c, append(only("LimitRanger"), emulate136)...), started(t, c, only("LimitRanger")...)
	pod := func(metadata, cpu, memory string) string {
		return `{"metadata":{` + metadata + `},"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"` + cpu + `"},"requests":{"cpu":"1"` + memory + `}}}]}}`
	}
	const memory, deleted = `,"memory":"1Mi"`, `"deletionTimestamp":"2026-01-01T00:00:00Z"`
	resize := func(metadata, cpu, memory string) services.AdmissionRequest {
		r := updateOf("pods", pod(metadata, "1", memory), pod(metadata, cpu, memory))
		r.Subresource = "resize"
		return r
	}
	if got, want := mutated(t, a, resize("", "1", ""), ""), pod("", "1", memory); got != want {
		t.Errorf("a resize without a request:\n%s, want\n%s", got, want)
	}
	for refused, r := range map[string]services.AdmissionRequest{
		"maximum cpu usage per Container is 1, but limit is 50": resize("", "50", memory),
		"": resize(deleted, "50", memory),
	} {
		mutated(t, a, r, refused)
		mutated(t, earlier, r, "")
	}
	claim := func(metadata string) string {
		return `{"metadata":{` + metadata + `},"spec":{"resources":{"requests":{"storage":"6Gi"}}}}`
	}
	for _, each := range []services.Admission{a, earlier} {
		for metadata, refused := range map[string]bool{"": true, deleted: false} {
			if _, err := each.Validate(t.Context(), updateOf("persistentvolumeclaims", claim(metadata), claim(metadata))); (err != nil) != refused {
				t.Errorf("a claim with {%s}: %v", metadata, err)
			}
		}
	}
}

func TestRuntimeClass(t *testing.T) {
	c := cluster(t)
	c.Put(t, resource.GroupResource{Group: "node.platform.io", Resource: "runtimeclasses"}, `{metadata: {name: safe}, overhead: {podFixed: {cpu: 250m}},
		scheduling: {nodeSelector: {safe: "yes"}, tolerations: [{key: safe, operator: Exists}]}}`)
	a := started(t, c, only("RuntimeClass")...)
	for _, x := range []struct{ spec, want, refused string }{
		{`{"runtimeClassName":"safe"}`, `{"nodeSelector":{"safe":"yes"},"overhead":{"cpu":"250m"},"runtimeClassName":"safe","tolerations":[{"key":"safe","operator":"Exists"}]}`, ""},
		{`{"nodeSelector":{"a":"b"},"overhead":{"cpu":"0.25"},"runtimeClassName":"safe","tolerations":[{"key":"safe","operator":"Exists"}]}`,
			`{"nodeSelector":{"a":"b","safe":"yes"},"overhead":{"cpu":"250m"},"runtimeClassName":"safe","tolerations":[{"key":"safe","operator":"Exists"}]}`, ""},
		{`{"runtimeClassName":"safe","nodeSelector":{"safe":"no"}}`, "", "conflict"},
		{`{"runtimeClassName":"safe","overhead":{"cpu":"1"}}`, "", "doesn't match"},
		{`{"overhead":{"cpu":"1"}}`, "", "without corresponding"},
		{`{"runtimeClassName":"none"}`, "", `RuntimeClass "none" not found`},
	} {
		got := mutated(t, a, createOf("", "pods", `{"spec":`+x.spec+`}`), x.refused)
		if x.want != "" && got != `{"spec":`+x.want+`}` {
			t.Errorf("%s:\n%s, want\n%s", x.spec, got, x.want)
		}
	}
}

func TestPodNodeSelector(t *testing.T) {
	c := cluster(t)
	c.Put(t, namespaces, `{metadata: {name: here, annotations: {scheduler.alpha.platform.io/node-selector: "zone=a, disk=fast"}}}`)
	c.Put(t, namespaces, `{metadata: {name: broken, annotations: {scheduler.alpha.platform.io/node-selector: "zone"}}}`)
	a := started(t, c, append(only(), "--enable-admission-plugins=PodNodeSelector")...)
	if got, want := mutated(t, a, createOf("", "pods", `{"spec":{"nodeSelector":{"own":"x"}}}`), ""), `{"spec":{"nodeSelector":{"disk":"fast","own":"x","zone":"a"}}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	mutated(t, a, createOf("", "pods", `{"spec":{"nodeSelector":{"zone":"b"}}}`), "conflicts")
	broken := createOf("", "pods", `{"spec":{}}`)
	broken.Namespace = "broken"
	mutated(t, a, broken, "not readable")
}

func TestVolumes(t *testing.T) {
	c := cluster(t)
	classes := resource.GroupResource{Group: "storage.platform.io", Resource: "storageclasses"}
	c.Put(t, classes, `{metadata: {name: grows}, allowVolumeExpansion: true}`)
	c.Put(t, classes, `{metadata: {name: fixed}}`)
	a := started(t, c)
	for _, x := range []struct{ group, plural, finalizer string }{
		{"", "persistentvolumes", "platform.io/pv-protection"}, {"", "persistentvolumeclaims", "platform.io/pvc-protection"},
		{"storage.platform.io", "volumeattributesclasses", "platform.io/vac-protection"},
	} {
		want := `{"metadata":{"finalizers":["mine","` + x.finalizer + `"]}}`
		if got := mutated(t, a, createOf(x.group, x.plural, `{"metadata":{"finalizers":["mine"]}}`), ""); got != want {
			t.Errorf("%s: %s", x.plural, got)
		}
		if got := mutated(t, a, createOf(x.group, x.plural, want), ""); got != "" {
			t.Errorf("%s that have the finalizer already: %s", x.plural, got)
		}
	}
	if got := mutated(t, a, createOf("example.com", "volumeattributesclasses", `{"metadata":{}}`), ""); got != "" {
		t.Errorf("a class of another group: %s", got)
	}
	claim := func(class, size, phase string) []byte {
		encoded, _ := json.Marshal(map[string]any{"spec": map[string]any{"storageClassName": class,
			"resources": map[string]any{"requests": map[string]any{"storage": size}}}, "status": map[string]any{"phase": phase}})
		return encoded
	}
	for _, x := range []struct {
		class, size, phase string
		want               bool
	}{
		{"grows", "2Gi", "Bound", true}, {"grows", "2Gi", "Pending", false}, {"fixed", "2Gi", "Bound", false},
		{"missing", "2Gi", "Bound", false}, {"fixed", "1024Mi", "Pending", true},
	} {
		_, err := a.Validate(t.Context(), services.AdmissionRequest{Operation: services.OperationUpdate, Resource: "persistentvolumeclaims",
			Namespace: "here", Name: "c", OldObject: claim(x.class, "1Gi", x.phase), Object: claim(x.class, x.size, x.phase)})
		if x.want != (err == nil) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestTopologyLabels: from release 1.36 on, a pod gets the topology labels (zone and region) of its node, over its own.
func TestTopologyLabels(t *testing.T) {
	c := cluster(t)
	c.Put(t, core("nodes"), `{metadata: {name: n1, labels: {topology.platform.io/zone: z, topology.platform.io/region: r, topology.platform.io/rack: k}}}`)
	c.Put(t, core("nodes"), `{metadata: {name: bare, labels: {a: b}}}`)
	bound := func(labels, kind, node string) services.AdmissionRequest {
		r := createOf("", "pods", `{"metadata":{"name":"c"`+labels+`},"target":{"kind":"`+kind+`","name":"`+node+`"}}`)
		r.Subresource, r.Kind = "binding", "Binding"
		return r
	}
	pod := func(spec string) services.AdmissionRequest {
		return createOf("", "pods", `{"metadata":{},"spec":{`+spec+`}}`)
	}
	changed := updateOf("pods", `{"metadata":{},"spec":{"nodeName":"n1"}}`, `{"metadata":{},"spec":{"nodeName":"n1"}}`)
	anywhere := bound("", "Node", "n1")
	anywhere.Resource, anywhere.Subresource = "bindings", ""
	const topology = `"topology.platform.io/region":"r","topology.platform.io/zone":"z"`
	cases := []struct {
		request services.AdmissionRequest
		want    string
	}{
		{bound(`,"labels":{"topology.platform.io/zone":"other","x":"y"}`, "Node", "n1"), `{"metadata":{"labels":{` + topology + `,"x":"y"},"name":"c"},"target":{"kind":"Node","name":"n1"}}`},
		{bound(`,"labels":{`+topology+`}`, "Node", "n1"), ""},
		{bound("", "", "n1"), ""},
		{bound("", "Node", "none"), ""},
		{bound("", "Node", "bare"), ""},
		{anywhere, ""},
		{pod(`"nodeName":"n1"`), `{"metadata":{"labels":{` + topology + `}},"spec":{"nodeName":"n1"}}`},
		{pod(""), ""},
		{changed, ""},
	}
	a, off, earlier := started(t, c, append(only(), emulate136)...), started(t, c, append(only(), emulate136, "--disable-admission-plugins=PodTopologyLabels")...), started(t, c, only()...)
	gated := started(t, c, append(only(), emulate136, "--enable-admission-plugins=PodTopologyLabels", "--feature-gates=PodTopologyLabelsAdmission=false")...)
	for _, x := range cases {
		if got := mutated(t, a, x.request, ""); got != x.want {
			t.Errorf("%s %s/%s %s: %s, want %s", x.request.Operation, x.request.Resource, x.request.Subresource, x.request.Object, got, x.want)
		}
		for name, none := range map[string]services.Admission{"without the plugin": off, "without the feature": gated, "at 1.21": earlier} {
			if got := mutated(t, none, x.request, ""); got != "" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// TestPodResize: from release 1.36 on, a pod is not resized beyond the allocatable resources of its node, or on a node
// that does not run Linux. A resize that changes nothing succeeds, as in Kubernetes, also if the spec has integers.
func TestPodResize(t *testing.T) {
	c := cluster(t)
	c.Put(t, core("nodes"), `{metadata: {name: n1, labels: {platform.io/os: linux}}, status: {allocatable: {cpu: "2", memory: 1Gi}}}`)
	c.Put(t, core("nodes"), `{metadata: {name: w, labels: {platform.io/os: windows}}, status: {allocatable: {cpu: "2", memory: 1Gi}}}`)
	pod := func(node, cpu, memory string) string {
		requests := `"resources":{"requests":{"cpu":"` + cpu + `","memory":"` + memory + `"}}`
		return `{"spec":{"nodeName":"` + node + `","terminationGracePeriodSeconds":30,"containers":[{"ports":[{"containerPort":80}],` + requests + `},{"resources":{"requests":{"cpu":"500m"}}}]}}`
	}
	to := func(was, is string) services.AdmissionRequest {
		r := updateOf("pods", was, is)
		r.Subresource = "resize"
		return r
	}
	a, earlier := started(t, c, append(only(), emulate136)...), started(t, c, only()...)
	for _, x := range []struct {
		request        services.AdmissionRequest
		refused, cause string
	}{
		{to(pod("n1", "1", "1Gi"), pod("n1", "1500m", "1Gi")), "", ""},
		{to(pod("n1", "1", "1Gi"), pod("n1", "1501m", "1025Mi")), `node didn't have enough allocatable resources: cpu, requested: 2001, allocatable: 2000; memory, requested: 1074790400, allocatable: 1073741824`, "NodeCapacity"},
		{to(pod("n1", "8", "1Gi"), pod("n1", "8", "1Gi")), "", ""},
		{to(pod("w", "1", "1Gi"), pod("w", "1", "1Gi")), "", ""},
		{to(pod("none", "1", "1Gi"), pod("none", "1", "1Gi")), "", ""},
		{to(pod("", "1", "1Gi"), pod("", "8", "1Gi")), "", ""},
		{updateOf("pods", pod("n1", "1", "1Gi"), pod("n1", "8", "1Gi")), "", ""},
		{to(pod("w", "1", "1Gi"), pod("w", "500m", "1Gi")), `pod resize is only supported on linux nodes, node "w" is "windows"`, "UnsupportedPlatform"},
		{to(pod("none", "1", "1Gi"), pod("none", "500m", "1Gi")), `node "none" not found`, ""},
	} {
		mutated(t, a, x.request, x.refused)
		mutated(t, earlier, x.request, "")
		if _, err := a.Validate(t.Context(), x.request); x.cause != "" {
			if s := services.AsStatus(err); s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Reason != x.cause {
				t.Errorf("%s: %+v", x.request.Object, s.Details)
			}
		}
	}
}
