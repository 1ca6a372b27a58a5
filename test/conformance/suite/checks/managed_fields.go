package checks

import (
	"slices"
	"strings"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func managedFields() {
	s := Section("Managed-fields entry")

	s.Check("MF-01", "entries have manager, operation, apiVersion, time, fieldsType and fieldsV1", func(t *T) {
		o := t.POST(t.In("configmaps")+"?fieldManager=maker", ConfigMap("a", "k", "v")).OK().Obj()
		e := o.Manager("maker", "Update")
		t.True(e != nil, "an entry of manager maker with operation Update, got %v", o.At("metadata.managedFields"))
		t.Eq("apiVersion", e.Str("apiVersion"), "v1")
		t.Eq("fieldsType", e.Str("fieldsType"), "FieldsV1")
		t.True(e.Str("time") != "", "a time")
		t.True(e.Has("fieldsV1"), "fieldsV1")
	})
	s.Check("MF-02", "fieldsV1: nested map with f:<name> keys and {} at leaves", func(t *T) {
		o := t.Apply("applier", t.In("configmaps")+"/a", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: x}}, data: {k: v}}`).OK().Obj()
		e := o.Manager("applier", "Apply")
		t.True(e != nil, "an entry of manager applier with operation Apply")
		t.Eq("fieldsV1", e.At("fieldsV1"), YAML(`{"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:app": {}}}}`))
	})
	s.Check("MF-03", "fieldManager defaults from the user agent", func(t *T) {
		o := t.POST(t.In("configmaps"), ConfigMap("a", "k", "v"), Header("User-Agent", "gardener/1.2 (linux)")).OK().Obj()
		named := slices.ContainsFunc(o.List("metadata.managedFields"), func(e Obj) bool { return strings.HasPrefix(e.Str("manager"), "gardener") })
		t.True(named, "an entry of a manager named after the user agent gardener/1.2, got %v", o.At("metadata.managedFields"))
	})
	s.Check("MF-04", "maintained by the server: a PUT without managedFields keeps the entries of others", func(t *T) {
		o := t.POST(t.In("configmaps")+"?fieldManager=maker", ConfigMap("a", "k", "v")).OK().Obj()
		changed := o.Copy().Set("data.l", "w")
		delete(changed.Map("metadata"), "managedFields")
		o = t.PUT(t.In("configmaps")+"/a?fieldManager=other", changed).OK().Obj()
		t.True(o.Owns("maker", "Update", "f:data", "f:k"), "manager maker still to own data.k, got %v", o.At("metadata.managedFields"))
		t.True(o.Owns("other", "Update", "f:data", "f:l"), "manager other to own data.l, got %v", o.At("metadata.managedFields"))
	})
	s.Check("MF-05", "list items of a map list are keyed by their key fields", func(t *T) {
		o := t.Apply("applier", t.In("services")+"/a", `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {ports: [{port: 80, protocol: TCP, name: web}]}`).OK().Obj()
		ports := o.Manager("applier", "Apply").Map("fieldsV1").Map("f:spec").Map("f:ports")
		t.True(len(ports) > 0, "entries below f:ports, got %v", o.At("metadata.managedFields"))
		found := slices.ContainsFunc(Keys(ports), func(k string) bool {
			return len(k) > 2 && k[:2] == "k:" && YAML("%s", k[2:]).Num("port") == 80
		})
		t.True(found, `a key k:{"port":80,"protocol":"TCP"}, got %q`, Keys(ports))
	})
}
