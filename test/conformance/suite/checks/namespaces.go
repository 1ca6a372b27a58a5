package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func namespaces() {
	s := Section("Namespaces and their contents")

	s.Check("NS-01", "resources of a namespace-scoped type are deleted when the namespace is deleted", func(t *T) {
		ns := t.NewNS()
		t.POST(In(ns, "configmaps"), ConfigMap("a")).OK()
		t.POST(In(ns, "secrets"), `{apiVersion: v1, kind: Secret, metadata: {name: a}}`).OK()
		t.DELETE("/api/v1/namespaces/"+ns, nil).OK()
		t.Gone("/api/v1/namespaces/"+ns, 40*time.Second)
		t.GET(In(ns, "configmaps") + "/a").Is(404)
		t.GET(In(ns, "secrets") + "/a").Is(404)
	})
	s.Check("NS-02", "custom resources in a deleted namespace are deleted too", func(t *T) {
		c := t.CRD(AnySchema)
		ns := t.NewNS()
		t.POST(In(ns, c.Resource()), c.Object("a", "")).OK()
		t.DELETE("/api/v1/namespaces/"+ns, nil).OK()
		t.Gone("/api/v1/namespaces/"+ns, 40*time.Second)
		t.GET(In(ns, c.Resource()) + "/a").Is(404)
	})
	s.Check("NS-03", "namespaces are themselves cluster-scoped; platform-system and platform-public exist", func(t *T) {
		names := t.GET("/api/v1/namespaces").OK().Obj().Names()
		t.Includes("namespaces", names, "default", "platform-system", "platform-public")
	})
}
