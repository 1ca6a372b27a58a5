package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func defaultPlugins() {
	s := Section("Default plugins, behavior as in Kubernetes")

	s.Check("ADM-17", "NamespaceLifecycle: nothing is created in a namespace that does not exist", func(t *T) {
		t.POST(In(t.Name("nowhere"), "configmaps"), ConfigMap("a")).Status(404, "NotFound")
	})
	s.Check("ADM-18", "ResourceQuota: a request beyond the quota is rejected", func(t *T) {
		t.POST(t.In("resourcequotas"), `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/secrets: "2"}}}`).OK()
		t.Until(40*time.Second, "the quota is in force", func() bool { return t.GET(t.In("resourcequotas") + "/q").Obj().Has("status.hard") })
		last := 0
		for i := range 4 {
			last = t.POST(t.In("secrets"), YAML(`{apiVersion: v1, kind: Secret, metadata: {name: s%d}}`, i)).Code
		}
		t.Eq("status of the Secret beyond the quota", last, 403)
	})
	s.Check("ADM-28", "ResourceQuota: a quota counts the pods of the priority class that its scope selects, and no others", func(t *T) {
		t.PodReady()
		class := t.Name("prio")
		t.POST(All("scheduling.platform.io/v1/priorityclasses"), YAML(`{apiVersion: scheduling.platform.io/v1, kind: PriorityClass, metadata: {name: %s}, value: 11}`, class)).OK()
		t.POST(t.In("resourcequotas"), YAML(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: "1"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [%s]}]}}}`, class)).OK()
		t.Until(40*time.Second, "the quota is in force", func() bool { return t.GET(t.In("resourcequotas") + "/q").Obj().Has("status.hard") })
		t.POST(t.In("pods"), Pod("a").Set("spec.priorityClassName", class)).OK()
		t.POST(t.In("pods"), Pod("b").Set("spec.priorityClassName", class)).Is(403)
		t.POST(t.In("pods"), Pod("c")).OK()
		t.Until(40*time.Second, "one pod is counted", func() bool { return t.GET(t.In("resourcequotas")+"/q").Obj().Str("status.used.pods") == "1" })
	})
	s.Check("ADM-19", "Priority: priority from the named class; an unknown class is rejected", func(t *T) {
		t.PodReady()
		class := t.Name("prio")
		t.POST(All("scheduling.platform.io/v1/priorityclasses"), YAML(`{apiVersion: scheduling.platform.io/v1, kind: PriorityClass, metadata: {name: %s}, value: 4711}`, class)).OK()
		t.Settle()
		t.Eq("spec.priority", t.POST(t.In("pods"), Pod("a").Set("spec.priorityClassName", class)).OK().Obj().Num("spec.priority"), 4711)
		t.POST(t.In("pods"), Pod("b").Set("spec.priorityClassName", "missing")).Is(403)
	})
	s.Check("ADM-20", "TaintNodesByCondition: a new node is tainted not-ready", func(t *T) {
		name := t.Name("node")
		o := t.POST("/api/v1/nodes", YAML(`{apiVersion: v1, kind: Node, metadata: {name: %s}}`, name)).OK().Obj()
		t.Cleanup(func() { t.DELETE("/api/v1/nodes/"+name, nil) })
		t.Eq("first taint", o.Str("spec.taints.0.key"), "node.platform.io/not-ready")
		t.Eq("its effect", o.Str("spec.taints.0.effect"), "NoSchedule")
	})
}
