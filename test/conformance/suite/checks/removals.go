package checks

import (
	"fmt"
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func removals() {
	s := Section("Removals")

	for _, c := range []struct{ id, gv, plural string }{
		{"REM-01", "extensions/v1beta1", "networkpolicies"}, {"REM-02", "extensions/v1beta1", "deployments"},
		{"REM-03", "apps/v1beta1", "deployments"}, {"REM-04", "apps/v1beta1", "statefulsets"},
		{"REM-05", "apps/v1beta2", "daemonsets"},
	} {
		s.Check(c.id, "stopped serving in 1.16: "+c.plural+" of "+c.gv, func(t *T) {
			t.GET(In("default", c.gv+"/"+c.plural)).Is(404)
		})
	}
	// componentstatuses is deprecated since 1.19 in both vocabularies' releases.
	const old = "/api/v1/componentstatuses"
	// announced checks that an old version is still served by release 1.21, and deprecated.
	for _, c := range []struct{ id, until, path string }{
		{"REM-06", "1.22", "admissionregistration.platform.io/v1beta1/validatingwebhookconfigurations"},
		{"REM-07", "1.22", "apiextensions.platform.io/v1beta1/customresourcedefinitions"},
		{"REM-08", "1.22", "rbac.authorization.platform.io/v1beta1/clusterroles"},
		{"REM-09", "1.22", "certificates.platform.io/v1beta1/certificatesigningrequests"},
		{"REM-10", "1.25", "batch/v1beta1/cronjobs"},
		{"REM-11", "1.25", "discovery.platform.io/v1beta1/endpointslices"},
	} {
		s.Check(c.id, "served until "+c.until+", with a Warning header: "+c.path, func(t *T) {
			r := t.GET(All(c.path)).Is(200)
			t.True(strings.HasPrefix(r.Header.Get("Warning"), "299 "), "a Warning header (RFC 7234, code 299), got %q", r.Header.Get("Warning"))
		}, PlatformOnly("gone from newer releases"))
	}
	s.Check("REM-12", "Deployment apps/v1: defaults of progressDeadlineSeconds, revisionHistoryLimit, maxSurge, maxUnavailable", func(t *T) {
		o := t.POST(t.In("apps/v1/deployments"), Deployment("a", 0)).OK().Obj()
		t.Eq("progressDeadlineSeconds", o.Num("spec.progressDeadlineSeconds"), 600)
		t.Eq("revisionHistoryLimit", o.Num("spec.revisionHistoryLimit"), 10)
		t.Eq("maxSurge", o.Str("spec.strategy.rollingUpdate.maxSurge"), "25%")
		t.Eq("maxUnavailable", o.Str("spec.strategy.rollingUpdate.maxUnavailable"), "25%")
	})
	s.Check("REM-13", "apps/v1: spec.selector required", func(t *T) {
		d := Deployment("a", 0)
		delete(d.Map("spec"), "selector")
		t.POST(t.In("apps/v1/deployments"), d).Status(422, "Invalid")
	})
	s.Check("REM-14", "webhook configuration v1: defaults of failurePolicy, matchPolicy and timeoutSeconds", func(t *T) {
		hooks := All("admissionregistration.platform.io/v1/validatingwebhookconfigurations")
		o := t.POST(hooks, t.WebhookV1("sideEffects: None", "admissionReviewVersions: [v1]")).OK().Obj()
		t.Cleanup(func() { t.DELETE(hooks+"/"+o.Name(), nil) })
		t.Eq("failurePolicy", o.Str("webhooks.0.failurePolicy"), "Fail")
		t.Eq("matchPolicy", o.Str("webhooks.0.matchPolicy"), "Equivalent")
		t.Eq("timeoutSeconds", o.Num("webhooks.0.timeoutSeconds"), 10)
	})
	for _, c := range []struct{ id, rule, a, b string }{
		{"REM-15", "sideEffects required", "admissionReviewVersions: [v1]", ""},
		{"REM-16", "sideEffects only None or NoneOnDryRun", "admissionReviewVersions: [v1]", "sideEffects: Some"},
		{"REM-17", "admissionReviewVersions required", "sideEffects: None", ""},
	} {
		s.Check(c.id, "webhook configuration v1: "+c.rule, func(t *T) {
			t.POST(All("admissionregistration.platform.io/v1/validatingwebhookconfigurations"), t.WebhookV1(c.a, c.b)).Status(422, "Invalid")
		})
	}
	crd := func(t *T, scope, version string) *Resp {
		group := "x" + RandomID(6) + ".example.com"
		crds := All("apiextensions.platform.io/v1/customresourcedefinitions")
		r := t.POST(crds, fmt.Sprintf(`
apiVersion: apiextensions.platform.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%s}
spec: {group: %s, %s names: {plural: things, kind: Thing}, versions: [{name: v1, served: true, storage: true, %s}]}`, group, group, scope, version))
		t.Cleanup(func() { t.DELETE(crds+"/things."+group, nil) })
		return r
	}
	const schema = `schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}`
	s.Check("REM-18", "CRD v1: spec.scope required", func(t *T) {
		crd(t, "", schema).Status(422, "Invalid")
		crd(t, "scope: Namespaced,", schema).OK()
	})
	s.Check("REM-19", "CRD v1: preserveUnknownFields: true disallowed", func(t *T) {
		crd(t, "scope: Namespaced, preserveUnknownFields: true,", schema).Status(422, "Invalid")
	})
	s.Check("REM-20", "SubjectAccessReview v1: spec.groups (v1beta1: spec.group)", func(t *T) {
		t.Eq("allowed with spec.groups", t.AccessReview(`{user: sam, groups: ["system:masters"], resourceAttributes: {verb: get, resource: nodes}}`).Bool("allowed"), true)
	})
	// define makes a namespaced type Thing with a definition of a version.
	define := func(t *T, version, spec string) (group string) {
		group = "x" + RandomID(6) + ".example.com"
		crds := All("apiextensions.platform.io/" + version + "/customresourcedefinitions")
		t.POST(crds, fmt.Sprintf(`
apiVersion: apiextensions.platform.io/%s
kind: CustomResourceDefinition
metadata: {name: things.%s}
spec: {group: %s, scope: Namespaced, names: {plural: things, kind: Thing}, %s}`, version, group, group, spec)).OK()
		t.Cleanup(func() { t.DELETE(crds+"/things."+group, nil) })
		return group
	}
	s.Check("REM-21", "CRD v1beta1: preserveUnknownFields defaults to true; nothing that is written gets lost", func(t *T) {
		group := define(t, "v1beta1", `version: v1, validation: {openAPIV3Schema: {properties: {spec: {properties: {s: {type: string}, any: {}}}}}}`)
		things := t.In(group + "/v1/things")
		body := `{apiVersion: ` + group + `/v1, kind: Thing, metadata: {name: a}, zz: 1, spec: {s: x, extra: {deep: [1, null]}, any: null}}`
		t.Until(20*time.Second, "the type is served", func() bool { return t.GET(things).Code == 200 })
		for _, o := range []Obj{t.POST(things, body).OK().Obj(), t.GET(things + "/a").OK().Obj(),
			t.PATCH("application/merge-patch+json", things+"/a", `{metadata: {labels: {new: label}}}`).OK().Obj()} {
			t.Eq("zz", o.Num("zz"), 1)
			t.Eq("spec", o.Map("spec"), Obj{"s": "x", "extra": Obj{"deep": []any{1, nil}}, "any": nil})
		}
		t.POST(things, strings.NewReplacer("name: a", "name: b", "s: x", "s: 5").Replace(body)).Status(422, "Invalid")
	}, PlatformOnly("gone from newer releases"))
	s.Check("REM-22", "CRD: defaults of the stored version show on objects that were written through another one", func(t *T) {
		group := define(t, "v1", `versions: [
  {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, b: {type: string, default: late}}}}}}},
  {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}]`)
		t.Until(20*time.Second, "the type is served", func() bool {
			return t.GET(t.In(group+"/v2/things")).Code == 200 && t.GET(t.In(group+"/v1/things")).Code == 200
		})
		made := t.POST(t.In(group+"/v2/things"), `{apiVersion: `+group+`/v2, kind: Thing, metadata: {name: a}, spec: {a: x}}`).OK().Obj()
		t.Eq("spec in v2", made.Map("spec"), Obj{"a": "x"})
		t.Eq("spec in v1", t.GET(t.In(group+"/v1/things")+"/a").OK().Obj().Map("spec"), Obj{"a": "x", "b": "late"})
		t.Eq("spec in the list of v1", t.GET(t.In(group+"/v1/things")).OK().Obj().Item("a").Map("spec"), Obj{"a": "x", "b": "late"})
		t.Eq("spec in v2 again", t.GET(t.In(group+"/v2/things")+"/a").OK().Obj().Map("spec"), Obj{"a": "x"})
	})
	for _, c := range []struct {
		id, usages, signer string
		request            Request
	}{
		{"REM-23", ClientUsages, SignerNode, SomeNode},
		{"REM-24", ServingUsages, SignerServing, Request{CN: "system:node:n1", Orgs: []string{"system:nodes"}, DNS: []string{"n1"}}},
		{"REM-25", ClientUsages, "platform.io/legacy-unknown", Someone},
	} {
		s.Check(c.id, "CSR v1beta1: a request without signerName gets "+c.signer, func(t *T) {
			body := t.CSR("", c.usages, c.request).Set("apiVersion", "certificates.platform.io/v1beta1")
			delete(body.Map("spec"), "signerName")
			o := t.POST(All("certificates.platform.io/v1beta1/certificatesigningrequests?dryRun=All"), body).OK().Obj()
			t.Eq("spec.signerName", o.Str("spec.signerName"), N(c.signer))
		}, PlatformOnly("gone from newer releases"))
	}
}
