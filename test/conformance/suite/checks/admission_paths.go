package checks

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

// admissionPaths checks that admission works alike for what is not stored: virtual types
// and connections.
func admissionPaths() {
	s := Section("Admission plugins")
	const authorization, authentication = "authorization.platform.io/v1", "authentication.platform.io/v1"
	local := func(t *T, user string) (path string, review Obj) {
		return t.In(authorization + "/localsubjectaccessreviews"), YAML(`
apiVersion: authorization.platform.io/v1
kind: LocalSubjectAccessReview
spec: {user: %s, resourceAttributes: {namespace: %s, verb: get, resource: pods}}`, user, t.NS())
	}

	s.Check("ADM-21", "dry-run, options and user reach the webhooks of virtual types", func(t *T) {
		seen := make(chan Obj, 100)
		t.Webhook(Hook{Resources: "localsubjectaccessreviews", Handle: func(rq Obj) Obj {
			select {
			case seen <- rq:
			default:
			}
			return Obj{"allowed": true}
		}})
		path, review := local(t, "jane")
		t.Until(10*time.Second, "the webhook is asked about a dry-run", func() bool {
			t.POST(path+"?dryRun=All&fieldManager=checker", review).OK()
			return len(seen) > 0
		})
		rq := <-seen
		t.Eq("dryRun", rq.Bool("dryRun"), true)
		t.Eq("options.kind", rq.Str("options.kind"), "CreateOptions")
		t.Eq("options.dryRun", rq.Strs("options.dryRun"), []string{"All"})
		t.Eq("options.fieldManager", rq.Str("options.fieldManager"), "checker")
		t.Eq("operation", rq.Str("operation"), "CREATE")
		t.Eq("object.spec.user", rq.Str("object.spec.user"), "jane")
		t.True(rq.Str("uid") != "", "a review has a uid")
	})
	s.Check("ADM-22", "a virtual type is answered as the webhooks have changed it, and their warnings arrive", func(t *T) {
		t.Webhook(Hook{Mutating: true, Resources: "localsubjectaccessreviews", Handle: func(Obj) Obj {
			reply := JSONPatchReply(`[{"op": "replace", "path": "/spec/user", "value": "mallory"}]`)
			reply["warnings"] = []string{"asked for somebody else"}
			return reply
		}})
		path, review := local(t, "jane")
		var r *Resp
		t.Until(10*time.Second, "the webhook changes the user", func() bool {
			r = t.POST(path, review).OK()
			return r.Obj().Str("spec.user") == "mallory"
		})
		t.Contains("Warning", r.Header.Get("Warning"), "asked for somebody else")
		t.True(r.Obj().Has("status.allowed"), "the review is answered")
	})
	s.Check("ADM-23", "a webhook that refuses may warn", func(t *T) {
		t.Webhook(Hook{Handle: func(rq Obj) Obj {
			return Obj{"allowed": false, "warnings": []string{"this goes wrong"}, "status": Obj{"message": "no", "code": 403}}
		}})
		var r *Resp
		t.Until(10*time.Second, "the webhook refuses", func() bool {
			r = t.POST(t.In("configmaps"), ConfigMap(t.Name("cm")))
			return r.Code == 403
		})
		t.Contains("Warning", r.Header.Get("Warning"), "this goes wrong")
	})
	s.Check("ADM-24", "webhooks see a connection's options as its object", func(t *T) {
		t.PodReady()
		t.POST(t.In("pods"), Pod("a")).OK()
		seen := make(chan Obj, 100)
		t.Webhook(Hook{Resources: "pods/exec, pods/attach, pods/portforward, pods/proxy", Operations: "CONNECT", Handle: func(rq Obj) Obj {
			seen <- rq
			return Obj{"allowed": true, "warnings": []string{"connecting"}}
		}})
		pod := t.In("pods") + "/a"
		ask := func(path string) Obj {
			var r *Resp
			t.Until(10*time.Second, "the webhook is asked about "+path, func() bool {
				r = t.POST(pod+path, nil)
				return len(seen) > 0
			})
			t.Contains("Warning of "+path, r.Header.Get("Warning"), "connecting")
			rq := <-seen
			t.Eq("operation", rq.Str("operation"), "CONNECT")
			t.Eq("name", rq.Str("name"), "a")
			t.Eq("dryRun", rq.Bool("dryRun"), false)
			t.Eq("kind of the object", rq.Str("object.kind"), rq.Str("kind.kind"))
			return rq.Map("object")
		}
		for path, want := range map[string]string{
			"/exec?command=ls&command=-l&container=c&stdout=1&tty=false": `{"apiVersion":"v1","kind":"PodExecOptions","stdout":true,"container":"c","command":["ls","-l"]}`,
			"/attach?stdin=true&container=c":                             `{"apiVersion":"v1","kind":"PodAttachOptions","stdin":true,"container":"c"}`,
			"/portforward?ports=80,8080":                                 `{"apiVersion":"v1","kind":"PodPortForwardOptions","ports":[80,8080]}`,
			"/proxy/a/b/":                                                `{"apiVersion":"v1","kind":"PodProxyOptions","path":"/a/b/"}`,
		} {
			var o Obj
			if err := json.Unmarshal([]byte(want), &o); err != nil {
				t.Failf("%v", err)
			}
			t.Eq("object of "+path, ask(path).String(), o.String())
		}
		t.POST(pod+"/exec?command=ls&dryRun=All", nil).Is(400)
		t.POST(pod+"/portforward?ports=many", nil).Is(400)
	})
	s.Check("ADM-25", "a webhook is told the kind of the body of a subresource", func(t *T) {
		kinds := make(chan string, 100)
		t.Webhook(Hook{Resources: "serviceaccounts/token", Handle: func(rq Obj) Obj {
			kinds <- strings.Join([]string{rq.Str("kind.group"), rq.Str("kind.kind"), rq.Str("resource.group"), rq.Str("resource.resource")}, "|")
			return Obj{"allowed": true}
		}})
		t.Until(10*time.Second, "the webhook is asked about a token", func() bool {
			t.POST(t.In("serviceaccounts")+"/default/token", `{apiVersion: authentication.platform.io/v1, kind: TokenRequest, spec: {audiences: [a]}}`)
			return len(kinds) > 0
		})
		t.Eq("group, kind and resource", <-kinds, "authentication.platform.io|TokenRequest||serviceaccounts")
	})

	s.Check("ADM-26", "webhooks are asked about a Scale as such, before and after, and may change it", func(t *T) {
		t.POST(t.In("apps/v1/deployments"), Deployment("a", 1)).OK()
		asked := make(chan Obj, 100)
		t.Webhook(Hook{Mutating: true, Resources: "deployments/scale", Operations: "UPDATE", Handle: func(rq Obj) Obj {
			asked <- rq
			return JSONPatchReply(`[{"op": "replace", "path": "/spec/replicas", "value": 3}]`)
		}})
		path := t.In("apps/v1/deployments") + "/a"
		t.Until(10*time.Second, "the webhook changes the scale", func() bool {
			t.PATCH(MergePatch, path+"/scale", `{spec: {replicas: 2}}`).OK()
			return t.GET(path).OK().Obj().Num("spec.replicas") == 3
		})
		rq := <-asked
		for _, part := range []string{"kind.kind", "object.kind", "oldObject.kind"} {
			t.Eq(part, rq.Str(part), "Scale")
		}
		t.Eq("resource", rq.Str("resource.resource")+"/"+rq.Str("subResource"), "deployments/scale")
		t.Eq("replicas", rq.Num("object.spec.replicas"), 2)
	})
	s.Check("ADM-27", "webhooks are told no name when a collection is deleted, and see each object", func(t *T) {
		asked := make(chan Obj, 100)
		t.Webhook(Hook{Resources: "configmaps", Operations: "DELETE", Handle: func(rq Obj) Obj {
			asked <- rq
			return Obj{"allowed": true}
		}})
		t.Until(10*time.Second, "the webhook is asked", func() bool {
			t.CM("a")
			t.DELETE(t.In("configmaps"), nil).OK()
			return len(asked) > 0
		})
		for rq := <-asked; ; rq = <-asked {
			if rq.Str("oldObject.metadata.name") == "a" {
				t.Eq("name", rq.Str("name"), "")
				return
			}
		}
	})

	dry := Section("Dry-run")
	dry.Check("DRY-14", "a virtual type that a webhook with side effects would see fails instead", func(t *T) {
		calls := make(chan bool, 100)
		t.Webhook(Hook{SideEffects: "Some", Version: "v1beta1", Resources: "localsubjectaccessreviews, subjectaccessreviews, selfsubjectaccessreviews, selfsubjectrulesreviews, tokenreviews", Handle: func(rq Obj) Obj {
			select {
			case calls <- rq.Bool("dryRun"):
			default:
			}
			return Obj{"allowed": true}
		}})
		path, review := local(t, "jane")
		t.Until(10*time.Second, "the webhook is called for a real review", func() bool {
			t.POST(path, review).OK()
			return len(calls) > 0
		})
		for resource, o := range map[string]any{
			path: review,
			All(authorization + "/subjectaccessreviews"):     `{apiVersion: authorization.platform.io/v1, kind: SubjectAccessReview, spec: {user: jane, nonResourceAttributes: {path: /, verb: get}}}`,
			All(authorization + "/selfsubjectaccessreviews"): `{apiVersion: authorization.platform.io/v1, kind: SelfSubjectAccessReview, spec: {nonResourceAttributes: {path: /, verb: get}}}`,
			All(authorization + "/selfsubjectrulesreviews"):  `{apiVersion: authorization.platform.io/v1, kind: SelfSubjectRulesReview, spec: {namespace: default}}`,
			All(authentication + "/tokenreviews"):            `{apiVersion: authentication.platform.io/v1, kind: TokenReview, spec: {token: none}}`,
		} {
			r := t.POST(resource+"?dryRun=All", o).Is(400)
			t.Contains("message", r.Obj().Str("message"), "does not support dry run")
		}
		for len(calls) > 0 {
			t.Eq("dryRun seen by the webhook", <-calls, false)
		}
	}, PlatformOnly("webhooks with side effects can only be made through v1beta1, gone since 1.22"))
}
