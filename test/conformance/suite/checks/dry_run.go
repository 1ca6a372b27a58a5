package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func dryRun() {
	s := Section("Dry-run")

	const dry = "?dryRun=All"
	s.Check("DRY-01", "POST: the response carries the object that would be persisted; nothing is persisted", func(t *T) {
		o := t.POST(t.In("configmaps")+dry, ConfigMap("a", "k", "v")).OK().Obj()
		t.Eq("data", o.At("data"), Obj{"k": "v"})
		t.Eq("namespace", o.Str("metadata.namespace"), t.NS())
		t.GET(t.In("configmaps") + "/a").Is(404)
	})
	s.Check("DRY-02", "PUT", func(t *T) {
		o := t.CM("a", "k", "v")
		o = t.PUT(t.In("configmaps")+"/a"+dry, o.Copy().Set("data.k", "w")).Is(200).Obj()
		t.Eq("data in the response", o.At("data"), Obj{"k": "w"})
		t.Eq("data persisted", t.GET(t.In("configmaps")+"/a").Is(200).Obj().At("data"), Obj{"k": "v"})
	})
	for id, c := range map[string]struct{ kind, body string }{
		"DRY-03": {MergePatch, `{data: {k: w}}`},
		"DRY-04": {StrategicPatch, `{data: {k: w}}`},
		"DRY-05": {ApplyPatch, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "w"}}`},
	} {
		s.Check(id, "PATCH "+c.kind+": merge happens, nothing is persisted", func(t *T) {
			before := t.CM("a", "k", "v")
			o := t.PATCH(c.kind, t.In("configmaps")+"/a"+dry+"&fieldManager=m&"+forceFor(c.kind), c.body).Is(200).Obj()
			t.Eq("data in the response", o.At("data"), Obj{"k": "w"})
			t.Eq("object persisted", t.GET(t.In("configmaps")+"/a").Is(200).Obj(), before)
		})
	}
	s.Check("DRY-06", "DELETE", func(t *T) {
		t.CM("a")
		t.DELETE(t.In("configmaps")+"/a"+dry, nil).OK()
		t.True(!t.GET(t.In("configmaps")+"/a").Is(200).Obj().Has("metadata.deletionTimestamp"), "no deletionTimestamp")
	})
	s.Check("DRY-07", "the normal status code: validation runs", func(t *T) {
		t.POST(t.In("configmaps")+dry, ConfigMap("Not_A_Name")).Status(422, "Invalid")
		t.CM("a")
		t.POST(t.In("configmaps")+dry, ConfigMap("a")).Status(409, "AlreadyExists")
		t.DELETE(t.In("configmaps")+"/missing"+dry, nil).Status(404, "NotFound")
	})
	s.Check("DRY-08", "defaulting runs", func(t *T) {
		o := t.POST(t.In("apps/v1/deployments")+dry, Deployment("a", 1)).OK().Obj()
		t.Eq("spec.revisionHistoryLimit", o.Num("spec.revisionHistoryLimit"), 10)
	})
	s.Check("DRY-09", "schema validation runs (custom resources)", func(t *T) {
		c := t.CRD(`{type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 5}}}}}`)
		t.POST(t.In(c.Resource())+dry, c.Object("a", "spec: {size: 9}")).Status(422, "Invalid")
		t.POST(t.In(c.Resource())+dry, c.Object("a", "spec: {size: 4}")).OK()
		t.GET(t.In(c.Resource()) + "/a").Is(404)
	})
	s.Check("DRY-10", "authorization is identical to the non-dry-run request", func(t *T) {
		user := t.User()
		t.POST(t.In("configmaps")+dry, ConfigMap("a"), As(user)).Status(403, "Forbidden")
		t.GrantIn(t.NS(), user.Name, `[{apiGroups: [""], resources: [configmaps], verbs: [create]}]`)
		t.Allowed(func() *Resp { return t.POST(t.In("configmaps")+dry, ConfigMap("a"), As(user)) }).OK()
	})
	s.Check("DRY-11", "a webhook with sideEffects None is called, with dryRun set", func(t *T) {
		flags := make(chan bool, 100)
		t.Webhook(Hook{Mutating: true, SideEffects: "None", Handle: func(rq Obj) Obj {
			select {
			case flags <- rq.Bool("dryRun"):
			default:
			}
			return JSONPatchReply(`[{"op": "add", "path": "/data", "value": {"by": "hook"}}]`)
		}})
		t.Until(10*time.Second, "the webhook changes a dry-run object", func() bool {
			return t.POST(t.In("configmaps")+dry, ConfigMap(t.Name("cm"))).OK().Obj().Str("data.by") == "hook"
		})
		t.Eq("dryRun in the admission review", <-flags, true)
	})
	s.Check("DRY-12", "a request that would trigger an admission controller with side effects fails instead", func(t *T) {
		calls := make(chan bool, 100)
		t.Webhook(Hook{SideEffects: "Some", Version: "v1beta1", Handle: func(rq Obj) Obj {
			select {
			case calls <- rq.Bool("dryRun"):
			default:
			}
			return Obj{"allowed": true}
		}})
		t.Until(10*time.Second, "the webhook is called for a real request", func() bool {
			t.CM(t.Name("cm"))
			return len(calls) > 0
		})
		t.POST(t.In("configmaps")+dry, ConfigMap("a")).ClientError()
		for len(calls) > 0 {
			t.Eq("dryRun seen by the webhook", <-calls, false)
		}
	}, PlatformOnly("webhooks with side effects can only be made through v1beta1, gone since 1.22"))
	s.Check("DRY-13", "a subresource: scale", func(t *T) {
		path := t.In("apps/v1/deployments")
		t.POST(path, Deployment("a", 1)).OK()
		o := t.PATCH(MergePatch, path+"/a/scale"+dry, `{spec: {replicas: 5}}`).OK().Obj()
		t.Eq("replicas in the response", o.Num("spec.replicas"), 5)
		t.Eq("replicas persisted", t.GET(path+"/a").Is(200).Obj().Num("spec.replicas"), 1)
	})
}

// forceFor forces an apply, where the parameter is allowed.
func forceFor(kind string) string {
	if kind == ApplyPatch {
		return "force=true"
	}
	return ""
}
