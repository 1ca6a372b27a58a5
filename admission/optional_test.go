package admission_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/admission"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
)

// alone turns on one plugin beside those that do not touch pods.
func alone(name string) []string { return append(only(), "--enable-admission-plugins="+name) }

// updateOf is the update of any object.
func updateOf(kind, before, object string) services.AdmissionRequest {
	r := createOf("", kind, object)
	r.Operation, r.OldObject = services.OperationUpdate, []byte(before)
	return r
}

func TestSecurityContextDeny(t *testing.T) {
	a := started(t, cluster(t), alone("SecurityContextDeny")...)
	for _, x := range []struct{ spec, refused string }{
		{`{}`, ""},
		{`{"securityContext":{"runAsNonRoot":true,"runAsGroup":1},"containers":[{"securityContext":{"privileged":true}}]}`, ""},
		{`{"securityContext":{"supplementalGroups":[1]}}`, `pods "c" is forbidden: pod.Spec.SecurityContext.SupplementalGroups is forbidden`},
		{`{"securityContext":{"seLinuxOptions":{}}}`, "pod.Spec.SecurityContext.SELinuxOptions is forbidden"},
		{`{"securityContext":{"runAsUser":0}}`, "pod.Spec.SecurityContext.RunAsUser is forbidden"},
		{`{"securityContext":{"fsGroup":1}}`, "pod.Spec.SecurityContext.FSGroup is forbidden"},
		{`{"containers":[{},{"securityContext":{"runAsUser":0}}]}`, ": SecurityContext.RunAsUser is forbidden"},
		{`{"initContainers":[{"securityContext":{"seLinuxOptions":{}}}]}`, ": SecurityContext.SELinuxOptions is forbidden"},
	} {
		mutated(t, a, createOf("", "pods", `{"spec":`+x.spec+`}`), x.refused)
		mutated(t, a, updateOf("pods", `{"spec":{}}`, `{"spec":`+x.spec+`}`), x.refused)
	}
	status := updateOf("pods", `{}`, `{"spec":{"securityContext":{"runAsUser":0}}}`)
	status.Subresource = "status"
	mutated(t, a, status, "")
}

func TestLimitPodHardAntiAffinityTopology(t *testing.T) {
	a := started(t, cluster(t), alone("LimitPodHardAntiAffinityTopology")...)
	for _, x := range []struct{ affinity, refused string }{
		{`{}`, ""},
		{`{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"platform.io/hostname"}]}}`, ""},
		{`{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":{"topologyKey":"zone"}}]}}`, ""},
		{`{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone"}]}}`, ""},
		{`{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"platform.io/hostname"},{"topologyKey":"zone"}]}}`,
			"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key platform.io/hostname is allowed"},
		{`{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}}`, "has TopologyKey  but only"},
	} {
		mutated(t, a, createOf("", "pods", `{"spec":{"affinity":`+x.affinity+`}}`), x.refused)
	}
}

func TestExtendedResourceToleration(t *testing.T) {
	a := started(t, cluster(t), alone("ExtendedResourceToleration")...)
	for _, x := range []struct{ spec, want string }{
		{`{"containers":[{"resources":{"requests":{"cpu":"1","hugepages-2Mi":"1","platform.io/x":"1","requests.a/b":"1","bad name/x":"1"}}}]}`, ""},
		{`{"containers":[{"resources":{"limits":{"example.com/gpu":"1"}}}]}`, ""},
		{`{"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}],"initContainers":[{"resources":{"requests":{"a.example.com/x":"1"}}}]}`,
			`[{"effect":"NoSchedule","key":"a.example.com/x","operator":"Exists"},{"effect":"NoSchedule","key":"example.com/gpu","operator":"Exists"}]`},
		{`{"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}],"tolerations":[{"key":"example.com/gpu","operator":"Exists","effect":"NoSchedule"}]}`, ""},
		{`{"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}],"tolerations":[{"key":"example.com/gpu","operator":"Exists"}]}`,
			`[{"key":"example.com/gpu","operator":"Exists"},{"effect":"NoSchedule","key":"example.com/gpu","operator":"Exists"}]`},
		{`{"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}],"tolerations":[{"key":"example.com/gpu","operator":"Exists","effect":"NoSchedule","tolerationSeconds":5}]}`,
			`[{"effect":"NoSchedule","key":"example.com/gpu","operator":"Exists"}]`},
	} {
		for _, r := range []services.AdmissionRequest{createOf("", "pods", `{"spec":`+x.spec+`}`), updateOf("pods", `{"spec":{}}`, `{"spec":`+x.spec+`}`)} {
			got := mutated(t, a, r, "")
			if x.want == "" && got != "" || !strings.Contains(got, `"tolerations":`+x.want) && x.want != "" {
				t.Errorf("%s of %s:\n%s, want\n%s", r.Operation, x.spec, got, x.want)
			}
		}
	}
}

func TestDenyServiceExternalIPs(t *testing.T) {
	a := started(t, cluster(t), alone("DenyServiceExternalIPs")...)
	of := func(ips string) string { return `{"spec":{"externalIPs":[` + ips + `]}}` }
	const refused = "Use of external IPs is denied by admission control"
	mutated(t, a, createOf("", "services", `{"spec":{}}`), "")
	mutated(t, a, createOf("", "services", of(``)), "")
	mutated(t, a, createOf("", "services", of(`"1.1.1.1"`)), refused)
	mutated(t, a, updateOf("services", of(``), of(`"1.1.1.1"`)), refused)
	mutated(t, a, updateOf("services", of(`"1.1.1.1","2.2.2.2"`), of(`"2.2.2.2"`)), "")
	mutated(t, a, updateOf("services", of(`"1.1.1.1"`), of(`"1.1.1.1","2.2.2.2"`)), refused)
	mutated(t, a, updateOf("services", of(`"1.1.1.1"`), of(``)), "")
}

func TestNamespaceExists(t *testing.T) {
	c := cluster(t)
	a := started(t, c, "--enable-admission-plugins=NamespaceExists", "--disable-admission-plugins=NamespaceLifecycle")
	c.Put(t, namespaces, `{metadata: {name: new}}`) // the mirror need not know it yet
	for _, x := range []struct {
		operation services.Operation
		namespace string
		want      bool
	}{
		{services.OperationCreate, "here", true}, {services.OperationCreate, "new", true}, {services.OperationCreate, "nowhere", false},
		{services.OperationUpdate, "nowhere", false}, {services.OperationDelete, "nowhere", false}, {services.OperationConnect, "nowhere", true},
		{services.OperationCreate, "", true}, {services.OperationCreate, "going", true},
	} {
		r := create(x.namespace)
		r.Operation = x.operation
		_, err := a.Validate(t.Context(), r)
		if x.want != (err == nil) || !x.want && err.Error() != `namespaces "nowhere" not found` {
			t.Errorf("%s in %q: %v", x.operation, x.namespace, err)
		}
	}
}

// startedWith is started with a store that can be written to.
func startedWith(t *testing.T, c *fake.Cluster, store services.Store, args ...string) services.Admission {
	t.Helper()
	base := c.Service()
	writable := run.Service{Name: base.Name, About: base.About, Offers: []run.Dependency{contract.Store, contract.WatchHub, bus.Conn, contract.Authz},
		Start: func(_ context.Context, n *run.Node) error {
			contract.Store.Offer(n, store)
			contract.WatchHub.Offer(n, c)
			contract.Authz.Offer(n, allow{})
			bus.Conn.Offer(n, c.Source().Bus)
			return nil
		}}
	var offered services.Admission
	user := run.Service{Name: "frontdoor", Needs: []run.Dependency{contract.Admission}, Start: func(ctx context.Context, n *run.Node) (err error) {
		offered, err = contract.Admission.Use(ctx, n)
		return err
	}}
	app := run.App{Name: "test", Services: []run.Service{writable, admission.Service(), user}}
	running, err := run.Start(t.Context(), app, append([]string{"--log-level=error"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
	return offered
}

func stored(t *testing.T, c *fake.Cluster, name string) (services.Object, bool) {
	t.Helper()
	o, err := c.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: namespaces, Name: name}})
	return o, err == nil
}

func TestNamespaceAutoProvision(t *testing.T) {
	c := cluster(t)
	a := startedWith(t, c, c.Store(), "--enable-admission-plugins=NamespaceAutoProvision")
	dry := create("dry")
	dry.DryRun = true
	if _, err := a.Mutate(t.Context(), dry); !services.IsReason(err, services.ReasonNotFound) {
		t.Errorf("a dry run: %v", err)
	}
	update := create("updated")
	update.Operation = services.OperationUpdate
	if _, err := a.Mutate(t.Context(), update); err != nil {
		t.Errorf("an update: %v", err)
	}
	for _, name := range []string{"dry", "updated"} {
		if _, ok := stored(t, c, name); ok {
			t.Errorf("namespace %q was created", name)
		}
	}
	var all sync.WaitGroup
	for range 8 { // all at once
		all.Go(func() {
			if _, err := a.Mutate(t.Context(), create("new")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	o, ok := stored(t, c, "new")
	text := string(o.JSON)
	for _, part := range []string{`"apiVersion":"v1","kind":"Namespace"`, `"labels":{"platform.io/metadata.name":"new"}`, `"spec":{"finalizers":["platform"]}`, `"status":{"phase":"Active"}`, `"uid":"` + o.UID} {
		if !ok || o.UID == "" || !strings.Contains(text, part) || o.Fields["status.phase"] != "Active" || o.Labels["platform.io/metadata.name"] != "new" {
			t.Errorf("%+v: %s lacks %s", o, text, part)
		}
	}
	for _, name := range []string{"Bad", "a/b", "..", strings.Repeat("x", 64)} {
		if _, err := a.Mutate(t.Context(), create(name)); !services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), "metadata.name") {
			t.Errorf("namespace %q: %v", name, err)
		}
		if _, ok := stored(t, c, name); ok {
			t.Errorf("namespace %q was created", name)
		}
	}
	if _, err := a.Mutate(t.Context(), create("going")); !services.IsReason(err, services.ReasonForbidden) {
		t.Errorf("in a namespace that is going: %v", err)
	}
}

// TestAutoProvisionAsksAdmission: webhooks see namespaces that are provided, may label
// and refuse them, and cannot make them invalid.
func TestAutoProvisionAsksAdmission(t *testing.T) {
	for name, x := range map[string]struct{ answer, want, refused string }{
		"labels":       {patching(`[{"op":"add","path":"/metadata/labels/team","value":"a"},{"op":"replace","path":"/metadata/name","value":"other"}]`), `"team":"a"`, ""},
		"no own label": {patching(`[{"op":"remove","path":"/metadata/labels"}]`), `"labels":{"platform.io/metadata.name":"new"}`, ""},
		"bad labels":   {patching(`[{"op":"add","path":"/metadata/labels/team","value":"not valid"}]`), "", "metadata.labels"},
		"a refusal":    {`"allowed":false,"status":{"message":"no more"}`, "", "no more"},
	} {
		c, s := cluster(t), serve(t)
		s.on("w", x.answer)
		hook := strings.Replace(s.hook("w"), "resources: [configmaps]", "resources: [namespaces]", 1)
		configure(t, c, "mutating", "a", hook)
		a := startedWith(t, c, c.Store(), "--enable-admission-plugins=NamespaceAutoProvision")
		_, err := a.Mutate(t.Context(), create("new"))
		o, ok := stored(t, c, "new")
		if x.refused != "" && (ok || !services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), x.refused)) ||
			x.refused == "" && (err != nil || !strings.Contains(string(o.JSON), x.want) || !strings.Contains(string(o.JSON), `"name":"new"`)) {
			t.Errorf("%s: %s, %v", name, o.JSON, err)
		}
	}
}

func TestPersistentVolumeLabel(t *testing.T) {
	a := started(t, cluster(t), "--enable-admission-plugins=PersistentVolumeLabel", "--disable-admission-plugins=StorageObjectInUseProtection")
	const provisioned, place = `"annotations":{"pv.platform.io/provisioned-by":"x"},`, `"labels":{"topology.platform.io/region":"r","topology.platform.io/zone":"b__a"}`
	const older = `"labels":{"failure-domain.beta.platform.io/region":"r","failure-domain.beta.platform.io/zone":"a"}`
	const wanted = `{"key":"topology.platform.io/region","operator":"In","values":["r"]},{"key":"topology.platform.io/zone","operator":"In","values":["a","b"]}`
	for name, x := range map[string]struct{ metadata, spec, want, refused string }{
		"no cloud":              {`"labels":{}`, `"hostPath":{}`, "", ""},
		"provisioned":           {provisioned + place, `"awsElasticBlockStore":{}`, `"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[` + wanted + `]}]}}`, ""},
		"with other terms":      {provisioned + place, `"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k"}]},{}]}}`, `[{"matchExpressions":[{"key":"k"},` + wanted + `]},{"matchExpressions":[` + wanted + `]}]`, ""},
		"with a term of a zone": {provisioned + place, `"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.platform.io/zone"}]}]}}`, "", ""},
		"by the older labels":   {provisioned + older, `"csi":{}`, `"key":"failure-domain.beta.platform.io/zone"`, ""},
		"with an empty zone":    {provisioned + strings.Replace(place, "b__a", "b__", 1), `"csi":{}`, "", "failed to convert label string for Zone: b__ to a Set"},
		"of a cloud":            {place, `"awsElasticBlockStore":{"volumeID":"v"}`, "", "error querying AWS EBS volume v: unable to build AWS cloud provider for EBS"},
		"a placeholder":         {place, `"gcePersistentDisk":{"pdName":"placeholder-for-provisioning"}`, "", ""},
	} {
		got := mutated(t, a, createOf("", "persistentvolumes", `{"metadata":{`+x.metadata+`},"spec":{`+x.spec+`}}`), x.refused)
		if x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}
