package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

// admissionVersions checks that webhooks with matchPolicy Equivalent see objects in the version
// of their rule, whatever version a client uses.
func admissionVersions() {
	s := Section("Admission plugins")

	s.Check("ADM-29", "a webhook for networking v1 sees and changes an Ingress written in extensions/v1beta1", func(t *T) {
		seen := make(chan Obj, 100)
		t.Webhook(Hook{Mutating: true, Groups: "networking.platform.io", Versions: "v1", Resources: "ingresses", Handle: func(rq Obj) Obj {
			seen <- rq
			return JSONPatchReply(`[{"op": "replace", "path": "/spec/defaultBackend/service/name", "value": "changed"}]`)
		}})
		var o Obj
		t.Until(10*time.Second, "the webhook changes an Ingress", func() bool {
			o = t.POST(t.In("extensions/v1beta1/ingresses"), `{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {generateName: i},
				spec: {ingressClassName: mine, backend: {serviceName: first, servicePort: 80}}}`).OK().Obj()
			return o.Str("spec.backend.serviceName") == "changed"
		})
		t.Eq("apiVersion", o.Str("apiVersion"), "extensions/v1beta1")
		t.Eq("port", o.Num("spec.backend.servicePort"), 80)
		rq := <-seen
		t.Eq("object.apiVersion", rq.Str("object.apiVersion"), "networking.platform.io/v1")
		t.Eq("object's backend", rq.Str("object.spec.defaultBackend.service.name"), "first")
		t.Eq("kind", rq.Str("kind.group")+"/"+rq.Str("kind.version"), "networking.platform.io/v1")
		t.Eq("resource", rq.Str("resource.group")+"/"+rq.Str("resource.version"), "networking.platform.io/v1")
		t.Eq("requestKind", rq.Str("requestKind.group")+"/"+rq.Str("requestKind.version"), "extensions/v1beta1")
		t.Eq("requestResource", rq.Str("requestResource.group")+"/"+rq.Str("requestResource.version"), "extensions/v1beta1")
	}, PlatformOnly("gone since 1.22"))

	versioned := func(t *T, conversion string) CRD {
		c := CRD{Group: "x" + RandomID(6) + ".example.com", Plural: "widgets", Kind: "Widget", Version: "v2"}
		crds := All("apiextensions.platform.io/v1/customresourcedefinitions")
		c.Path = crds + "/widgets." + c.Group
		t.POST(crds, YAML(`
apiVersion: apiextensions.platform.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%s}
spec:
  group: %s
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  conversion: %s
  versions:
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {width: {type: integer}, height: {type: integer}}}}}`,
			c.Group, c.Group, conversion)).Made()
		t.Cleanup(func() { t.DELETE(c.Path, nil) })
		t.Served(c)
		return c
	}
	s.Check("ADM-30", "a webhook for v1 of a custom type sees what the conversion webhook makes of a v2, and changes it", func(t *T) {
		c := versioned(t, t.ConvertedBy(func(o Obj, apiVersion string) {
			if o.Has("size") {
				o["width"], o["height"] = o["size"], o["size"]
				delete(o, "size")
			} else {
				o["size"] = o["width"]
				delete(o, "width")
				delete(o, "height")
			}
		}))
		seen := make(chan Obj, 100)
		t.Webhook(Hook{Mutating: true, Groups: c.Group, Versions: "v1", Resources: "widgets", Handle: func(rq Obj) Obj {
			seen <- rq
			return JSONPatchReply(`[{"op": "test", "path": "/size", "value": 3}, {"op": "replace", "path": "/size", "value": 5}]`)
		}})
		var o Obj
		t.Until(10*time.Second, "the webhook changes the size", func() bool {
			o = t.POST(t.In(c.Resource()), c.Object(t.Name("w"), "width: 3\nheight: 3")).OK().Obj()
			return o.Num("width") == 5
		})
		t.Eq("height", o.Num("height"), 5)
		rq := <-seen
		t.Eq("object.apiVersion", rq.Str("object.apiVersion"), c.Group+"/v1")
		t.Eq("requestKind.version", rq.Str("requestKind.version"), "v2")
	})
	s.Check("ADM-31", "a webhook for v1 of a custom type loses no field of a v2 that v1 does not have", func(t *T) {
		c := versioned(t, "{strategy: None}")
		t.Webhook(Hook{Mutating: true, Groups: c.Group, Versions: "v1", Resources: "widgets", Handle: func(rq Obj) Obj {
			if rq.Str("object.apiVersion") != c.Group+"/v1" {
				return Obj{"allowed": false}
			}
			return JSONPatchReply(`[{"op": "add", "path": "/metadata/labels", "value": {"seen": "true"}}]`)
		}})
		var o Obj
		t.Until(10*time.Second, "the webhook adds a label", func() bool {
			o = t.POST(t.In(c.Resource()), c.Object(t.Name("w"), "width: 3\nheight: 4")).OK().Obj()
			return o.Str("metadata.labels.seen") == "true"
		})
		t.Eq("width", o.Num("width"), 3)
		t.Eq("height", o.Num("height"), 4)
		changed := t.PATCH(MergePatch, t.In(c.Resource())+"/"+o.Name(), `{width: 7}`).OK().Obj()
		t.Eq("width after a patch", changed.Num("width"), 7)
		t.Eq("height after a patch", changed.Num("height"), 4)
	})
}
