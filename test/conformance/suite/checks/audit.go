package checks

import (
	"bytes"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

// audit checks the annotation, and in a log what Kubernetes writes: the specification does not show
// the form of a record.
func audit() {
	s := Section("Audit")

	annotation := func(t *T, path string) any {
		var value any
		name := "platform.io/deprecated"
		if Vocabulary() == K8s {
			name = "k8s.io/deprecated"
		}
		for _, record := range t.AuditRecords(t.GET(path).Is(200)) {
			if v, ok := record.Map("annotations")[name]; ok {
				value = v
			}
		}
		return value
	}
	s.Check("AUDIT-01", "audit annotation platform.io/deprecated = true on a request to a deprecated endpoint", func(t *T) {
		old := "/apis/policy/v1beta1/poddisruptionbudgets"
		if Vocabulary() == K8s { // since 1.19, and never removed
			old = "/api/v1/componentstatuses"
		}
		t.Eq("annotation", annotation(t, old), "true")
	})
	s.Check("AUDIT-02", "no such annotation on an endpoint that is not deprecated", func(t *T) {
		t.Eq("annotation", annotation(t, t.In("configmaps")), nil)
	})
	s.Check("AUDIT-03", "a record names the user, the verb, the object and the status of the response", func(t *T) {
		t.CM("audited")
		for path, want := range map[string]float64{t.In("configmaps") + "/audited": 200, t.In("configmaps") + "/none": 404} {
			records := t.AuditRecords(t.GET(path))
			last := records[len(records)-1]
			t.Eq("kind", last.Str("kind"), "Event")
			t.Eq("user", last.Str("user.username"), "admin")
			t.Eq("verb", last.Str("verb"), "get")
			t.Eq("resource", last.Str("objectRef.resource"), "configmaps")
			t.Eq("code", last.Num("responseStatus.code"), want)
		}
	})
	s.Check("AUDIT-04", "a refused request is recorded with its user, an impersonated one beside it", func(t *T) {
		u := t.User()
		refused := t.AuditRecords(t.GET("/api/v1/secrets", As(u)).Is(403))
		t.Eq("user", refused[len(refused)-1].Str("user.username"), u.Name)
		acted := t.AuditRecords(t.GET("/version", Impersonate("ivan")).Is(200))
		last := acted[len(acted)-1]
		t.Eq("user", last.Str("user.username"), "admin")
		t.Eq("impersonated user", last.Str("impersonatedUser.username"), "ivan")
	})
	s.Check("AUDIT-05", "tokens and the content of secrets are not in the log unless a policy asks for bodies", func(t *T) {
		const word = "c3dvcmRmaXNoLW9mLXRoZS1jb25mb3JtYW5jZS1zdWl0ZQ=="
		t.AuditRecords(t.POST(t.In("secrets"), `{apiVersion: v1, kind: Secret, metadata: {name: audited}, data: {word: `+word+`}}`).OK())
		t.AuditRecords(t.GET(t.In("secrets")).Is(200))
		for _, secret := range []string{word, "swordfish-of-the-conformance-suite", t.Fix.AdminToken} {
			t.True(!bytes.Contains(t.AuditLog(), []byte(secret)), "no %q in the audit log", secret)
		}
	})
}
