package quota_test

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

func item(t *testing.T, plural, manifest string) quota.Item {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	plural, group, _ := strings.Cut(plural, ".")
	i, err := quota.NewCounter(vocabulary.Platform()).Read(resource.GroupResource{Group: group, Resource: plural}, json)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestUsed(t *testing.T) {
	for _, x := range []struct{ plural, manifest, want string }{
		{"secrets", `{}`, "count/secrets=1,secrets=1"},
		{"bindings", `{}`, "count/bindings=1"},
		{"services", `{spec: {type: LoadBalancer, ports: [{}, {}]}}`, "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2"},
		{"services", `{spec: {type: LoadBalancer, ports: [{}], allocateLoadBalancerNodePorts: false}}`, "count/services=1,services=1,services.loadbalancers=1"},
		{"services", `{}`, "count/services=1,services=1"},
		{"persistentvolumeclaims", `{spec: {storageClassName: fast, resources: {requests: {storage: 1Gi}}}}`, "count/persistentvolumeclaims=1," +
			"fast.storageclass.storage.platform.io/persistentvolumeclaims=1,fast.storageclass.storage.platform.io/requests.storage=1Gi," +
			"persistentvolumeclaims=1,requests.storage=1Gi"},
		{"pods", `{status: {phase: Failed}}`, "count/pods=1"},
		{"pods", `{spec: {overhead: {cpu: 1}, initContainers: [{resources: {requests: {cpu: 9}}}, {resources: {requests: {memory: 1}}}],
			containers: [{resources: {requests: {cpu: 1, memory: 5}, limits: {cpu: 2}}}, {resources: {requests: {cpu: 1, example.com/gpu: 1}}}]}}`,
			"count/pods=1,cpu=10,limits.cpu=3,memory=5,pods=1,requests.cpu=10,requests.example.com/gpu=1,requests.memory=5"},
		{"pods", `{spec: {initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 2}}}, {resources: {requests: {cpu: 3}}}], containers: [{resources: {requests: {cpu: 1}}}]}}`,
			"count/pods=1,cpu=5,pods=1,requests.cpu=5"},
		{"pods", `{spec: {initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 2}}}], containers: [{resources: {requests: {cpu: 1}}}]}}`,
			"count/pods=1,cpu=3,pods=1,requests.cpu=3"},
		{"pods", `{spec: {resources: {requests: {cpu: 4}, limits: {cpu: 5}}, overhead: {cpu: 1}, containers: [{resources: {requests: {cpu: 1, memory: 2}}}]}}`,
			"count/pods=1,cpu=5,limits.cpu=6,memory=2,pods=1,requests.cpu=5,requests.memory=2"},
		{"pods", `{spec: {overhead: {cpu: 1, memory: 1}, containers: [{resources: {limits: {cpu: 1, memory: 0}}}]}}`,
			"count/pods=1,cpu=1,limits.cpu=2,limits.memory=0,memory=1,pods=1,requests.cpu=1,requests.memory=1"},
		{"pods", `{spec: {overhead: {cpu: 1}, containers: [{}]}}`, "count/pods=1,cpu=1,pods=1,requests.cpu=1"},
		{"resourceclaims.resource.platform.io", `{spec: {devices: {requests: [{exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}, {exactly: {deviceClassName: gpu, allocationMode: All}},
			{firstAvailable: [{deviceClassName: gpu, allocationMode: ExactCount, count: 4}, {deviceClassName: nic, allocationMode: ExactCount, count: 3}, {deviceClassName: nic, allocationMode: ExactCount, count: 1}]}]}}}`,
			"count/resourceclaims.resource.platform.io=1,gpu.deviceclass.resource.platform.io/devices=38,nic.deviceclass.resource.platform.io/devices=3"},
		{"resourceclaims.resource.platform.io", `{spec: {devices: {requests: [{deviceClassName: gpu, allocationMode: ExactCount, count: 2}]}}}`,
			"count/resourceclaims.resource.platform.io=1,gpu.deviceclass.resource.platform.io/devices=2"},
		{"resourceclaims.example.com", `{spec: 1}`, "count/resourceclaims.example.com=1"},
	} {
		if got := item(t, x.plural, x.manifest).Used.String(); got != x.want {
			t.Errorf("%s %s:\n%s, want\n%s", x.plural, x.manifest, got, x.want)
		}
	}
}

// TestEnds: a pod that must have stopped counts as an object only.
func TestEnds(t *testing.T) {
	const all, kept = "count/pods=1,cpu=1,pods=1,requests.cpu=1", "count/pods=1"
	deleted := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for metadata, want := range map[string][2]string{
		`{deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30}`: {all, kept},
		`{deletionTimestamp: "2026-01-01T00:00:00Z"}`:                                 {all, all},
		`{}`: {all, all},
	} {
		pod := item(t, "pods", `{metadata: `+metadata+`, spec: {containers: [{resources: {requests: {cpu: 1}}}]}}`)
		for i, after := range []time.Duration{30 * time.Second, 31 * time.Second} {
			if got := pod.At(deleted.Add(after)).Used.String(); got != want[i] {
				t.Errorf("%s after %v: %s, want %s", metadata, after, got, want[i])
			}
		}
	}
}

// TestResizing: while a pod is resized, the larger size counts, unless its node has refused the new
// one. Init containers that end do not have the size that is reported.
func TestResizing(t *testing.T) {
	resources := func(cpu string) string {
		return `resources: {requests: {cpu: ` + cpu + `}, limits: {cpu: ` + cpu + `}}`
	}
	pod := func(status string) string {
		return `{spec: {initContainers: [{name: i, ` + resources("1") + `}, {name: s, restartPolicy: Always, ` + resources("1") + `}],
			containers: [{name: a, restartPolicy: Always, ` + resources("4") + `}]}, status: {` + status + `}}`
	}
	statuses := func(cpu, allocated string) string {
		return `containerStatuses: [{name: a, allocatedResources: {cpu: ` + allocated + `}, ` + resources(cpu) + `}],
			initContainerStatuses: [{name: s, allocatedResources: {cpu: 2}, ` + resources("1") + `}, {name: i, ` + resources("90") + `}]`
	}
	pending := func(reason string) string { return `, conditions: [{type: PodResizePending, reason: ` + reason + `}]` }
	whole := `{spec: {resources: {requests: {cpu: 3}}, containers: [{resources: {requests: {memory: 1}}}]}, status: {resources: {requests: {cpu: 5, memory: 9}}, allocatedResources: {cpu: 4}}}`
	for manifest, want := range map[string]string{
		pod(""):                 "count/pods=1,cpu=5,limits.cpu=5,pods=1,requests.cpu=5",
		pod(statuses("2", "3")): "count/pods=1,cpu=6,limits.cpu=5,pods=1,requests.cpu=6",
		pod(statuses("7", "6")): "count/pods=1,cpu=9,limits.cpu=8,pods=1,requests.cpu=9",
		pod(statuses("2", "7")): "count/pods=1,cpu=9,limits.cpu=5,pods=1,requests.cpu=9",
		pod(statuses("2", "3") + pending("Infeasible")): "count/pods=1,cpu=5,limits.cpu=3,pods=1,requests.cpu=5",
		pod(statuses("2", "3") + pending("Deferred")):   "count/pods=1,cpu=6,limits.cpu=5,pods=1,requests.cpu=6",
		whole: "count/pods=1,cpu=5,memory=1,pods=1,requests.cpu=5,requests.memory=1",
	} {
		if got := item(t, "pods", manifest).Used.String(); got != want {
			t.Errorf("%s:\n%s, want\n%s", manifest, got, want)
		}
	}
	json, err := yaml.YAMLToJSON([]byte(pod(statuses("7", "7"))))
	if err != nil {
		t.Fatal(err)
	}
	requested, err := quota.NewCounter(vocabulary.Platform()).Requested().Read(resource.GroupResource{Resource: "pods"}, json)
	if got, want := requested.Used.String(), "count/pods=1,cpu=5,limits.cpu=5,pods=1,requests.cpu=5"; err != nil || got != want {
		t.Errorf("requested: %s, %v, want %s", got, err, want)
	}
}

func TestScopes(t *testing.T) {
	plain, quick := `{spec: {containers: [{}]}}`, `{spec: {activeDeadlineSeconds: 5, priorityClassName: high, containers: [{resources: {limits: {cpu: 1}}}]}}`
	social := `{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{namespaces: [other]}]}}}}`
	for _, x := range []struct {
		spec, pod string
		want      bool
	}{
		{`{}`, plain, true},
		{`{scopes: [BestEffort, NotTerminating]}`, plain, true},
		{`{scopes: [BestEffort, Terminating]}`, plain, false},
		{`{scopes: [NotBestEffort, Terminating]}`, quick, true},
		{`{scopes: [PriorityClass]}`, plain, false},
		{`{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}}`, quick, true},
		{`{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}}`, quick, false},
		{`{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}}`, plain, true},
		{`{scopes: [CrossNamespacePodAffinity]}`, social, true},
		{`{scopes: [NotBestEffort]}`, `{spec: {resources: {requests: {cpu: 1}}, containers: [{}]}}`, true},
		{`{scopes: [CrossNamespacePodAffinity]}`, plain, false},
	} {
		var q quota.Quota
		if err := yaml.Unmarshal([]byte(x.spec), &q.Spec); err != nil {
			t.Fatal(err)
		}
		if got := item(t, "pods", x.pod).In(&q); got != x.want {
			t.Errorf("%s in %s: %v", x.pod, x.spec, got)
		}
		if len(q.Spec.Scopes) > 0 && item(t, "secrets", `{}`).In(&q) {
			t.Errorf("a secret counts in %s", x.spec)
		}
	}
}

// TestClaimsInScopes: a claim is in the scope of the class that it wants, of the one that it
// has, and of the one that it is being given.
func TestClaimsInScopes(t *testing.T) {
	plain, gold := `{spec: {}}`, `{spec: {volumeAttributesClassName: gold}}`
	moving := `{spec: {volumeAttributesClassName: gold}, status: {currentVolumeAttributesClassName: silver, modifyVolumeStatus: {targetVolumeAttributesClassName: lead}}}`
	for operator, want := range map[string][3]bool{
		"Exists":                        {false, true, true},
		"DoesNotExist":                  {true, false, false},
		"In, values: [gold]":            {false, true, true},
		"In, values: [silver]":          {false, false, true},
		"In, values: [lead]":            {false, false, true},
		"NotIn, values: [gold]":         {true, false, true},
		"NotIn, values: [gold, silver]": {true, false, true},
	} {
		var q quota.Quota
		if err := yaml.Unmarshal([]byte(`{scopeSelector: {matchExpressions: [{scopeName: VolumeAttributesClass, operator: `+operator+`}]}}`), &q.Spec); err != nil {
			t.Fatal(err)
		}
		for i, claim := range []string{plain, gold, moving} {
			if got := item(t, "persistentvolumeclaims", claim).In(&q); got != want[i] {
				t.Errorf("%s in a scope with %s: %v", claim, operator, got)
			}
		}
		if item(t, "pods", `{spec: {}}`).In(&q) || item(t, "secrets", `{}`).In(&q) {
			t.Errorf("a pod or a secret counts in a scope with %s", operator)
		}
	}
	if item(t, "persistentvolumeclaims", gold).Equal(item(t, "persistentvolumeclaims", moving)) {
		t.Error("claims of different classes count in the same quotas")
	}
}

func TestLacking(t *testing.T) {
	var hard quota.Amounts
	if err := yaml.Unmarshal([]byte(`{cpu: 1, limits.memory: 1, pods: 1}`), &hard); err != nil {
		t.Fatal(err)
	}
	for pod, want := range map[string]string{
		`{spec: {containers: [{resources: {requests: {cpu: 1}, limits: {memory: 1}}}]}}`:                    "",
		`{spec: {containers: [{resources: {requests: {cpu: 1}, limits: {memory: 1}}}, {}]}}`:                "cpu,limits.memory",
		`{spec: {initContainers: [{resources: {requests: {cpu: 1}}}], containers: []}}`:                     "limits.memory",
		`{spec: {resources: {requests: {cpu: 1}}, containers: [{}]}}`:                                       "",
		`{spec: {containers: [{resources: {requests: {cpu: 1, memory: 1}, limits: {cpu: 1, memory: 1}}}]}}`: "",
	} {
		if got := strings.Join(item(t, "pods", pod).Lacking(hard), ","); got != want {
			t.Errorf("%s lacks %q, want %q", pod, got, want)
		}
	}
}

func TestCounted(t *testing.T) {
	c := quota.NewCounter(vocabulary.Platform())
	for name, want := range map[string]string{
		"count/deployments.apps": "deployments.apps", "count/pods": "pods", "limits.cpu": "pods", "hugepages-2Mi": "pods",
		"gpu.deviceclass.resource.platform.io/devices": "resourceclaims.resource.platform.io",
		"requests.example.com/gpu":                     "pods", "requests.storage": "persistentvolumeclaims", "services.nodeports": "services", "secrets": "secrets",
		"fast.storageclass.storage.platform.io/requests.storage": "persistentvolumeclaims", "example.com/gpu": "", "nothing": "", "count/": "",
	} {
		gr, ok := c.Counted(name)
		if ok != (want != "") || ok && gr.String() != want {
			t.Errorf("%s counts %v, %v", name, gr, ok)
		}
	}
}
