package checks

import (
	"fmt"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func deprecation() {
	s := Section("Deprecation rules")

	const schema = `schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}`
	// componentstatuses is deprecated since 1.19 in both vocabularies' releases.
	const old = "/api/v1/componentstatuses"
	s.Check("VER-01", "objects round-trip between versions without loss: two versions of a custom resource type", func(t *T) {
		group := "x" + RandomID(6) + ".example.com"
		c := CRD{Group: group, Plural: "things", Kind: "Thing", Version: "v1", Path: All("apiextensions.platform.io/v1/customresourcedefinitions") + "/things." + group}
		version := func(name string, storage bool) string {
			return fmt.Sprintf("{name: %s, served: true, storage: %v, schema: {openAPIV3Schema: %s}}", name, storage, AnySchema)
		}
		t.POST(All("apiextensions.platform.io/v1/customresourcedefinitions"), fmt.Sprintf(`
apiVersion: apiextensions.platform.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%s}
spec: {group: %s, scope: Namespaced, names: {plural: things, kind: Thing}, versions: [%s, %s]}`, group, group, version("v1beta1", false), version("v1", true))).OK()
		t.Cleanup(func() { t.DELETE(c.Path, nil) })
		t.Served(c)
		old := c
		old.Version = "v1beta1"
		made := t.POST(t.In(old.Resource()), old.Object("a", "spec: {deep: {list: [1, two]}, text: x}")).OK().Obj()
		got := t.GET(t.In(c.Resource()) + "/a").Is(200).Obj()
		t.Eq("apiVersion through v1", got.Str("apiVersion"), group+"/v1")
		t.Eq("spec through v1", got.At("spec"), made.At("spec"))
		got = t.GET(t.In(old.Resource()) + "/a").Is(200).Obj()
		t.Eq("apiVersion through v1beta1", got.Str("apiVersion"), group+"/v1beta1")
		t.Eq("spec through v1beta1", got.At("spec"), made.At("spec"))
		t.Eq("uid", got.UID(), made.UID())
	})
	s.Check("VER-05", "--show-hidden-metrics-for-version= names the previous release, or is refused", func(t *T) {
		t.Refuses("--show-hidden-metrics-for-version=1.3")
	})
	s.Check("VER-02", "the preferred version of a group is its most stable one", func(t *T) {
		for _, g := range []string{"apps", "batch", "certificates.platform.io", "rbac.authorization.platform.io"} {
			t.Eq("preferred version of "+g, t.GET("/apis/"+g).Is(200).Obj().Str("preferredVersion.version"), "v1")
		}
	})
	s.Check("VER-03", "Ingress v1beta1 reads through v1: backend becomes defaultBackend, serviceName and servicePort become service", func(t *T) {
		t.POST(t.In("networking.platform.io/v1beta1/ingresses"), `
apiVersion: networking.platform.io/v1beta1
kind: Ingress
metadata: {name: a}
spec: {ingressClassName: own, backend: {serviceName: web, servicePort: 80}}`).OK()
		o := t.GET(t.In("networking.platform.io/v1/ingresses") + "/a").Is(200).Obj()
		t.Eq("spec.defaultBackend", o.At("spec.defaultBackend"), Obj{"service": Obj{"name": "web", "port": Obj{"number": 80}}})
	}, PlatformOnly("v1beta1 is gone since 1.22"))
	s.Check("VER-04", "CRD v1beta1 reads through v1: JSONPath becomes jsonPath, below spec.versions", func(t *T) {
		group := "x" + RandomID(6) + ".example.com"
		crds := "apiextensions.platform.io/%s/customresourcedefinitions"
		t.POST(All(fmt.Sprintf(crds, "v1beta1")), fmt.Sprintf(`
apiVersion: apiextensions.platform.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.%s}
spec:
  group: %s
  version: v1
  scope: Namespaced
  preserveUnknownFields: false
  names: {plural: things, kind: Thing}
  validation: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
  additionalPrinterColumns: [{name: Size, type: integer, JSONPath: .spec.size}]`, group, group)).OK()
		o := t.GET(All(fmt.Sprintf(crds, "v1")) + "/things." + group).Is(200).Obj()
		t.Eq("jsonPath", o.Str("spec.versions.0.additionalPrinterColumns.0.jsonPath"), ".spec.size")
		t.True(o.Has("spec.versions.0.schema"), "a schema below spec.versions")
	}, PlatformOnly("v1beta1 is gone since 1.22"))
}
