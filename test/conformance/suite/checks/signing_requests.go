package checks

import (
	"bytes"
	"encoding/pem"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func signingRequests() {
	s := Section("CertificateSigningRequest")

	s.Check("CSR-01", "create with a valid spec: Pending, status.certificate empty", func(t *T) {
		o, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		t.Eq("apiVersion", o.Str("apiVersion"), "certificates.platform.io/v1")
		o = t.GET(path).OK().Obj()
		t.Eq("status.certificate", o.Str("status.certificate"), "")
		t.Eq("number of conditions", len(o.List("status.conditions")), 0)
	})
	for id, bad := range map[string]string{
		"CSR-02": B64("no PEM at all"),
		"CSR-03": B64("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"),
		"CSR-04": "",
	} {
		what := map[string]string{"CSR-02": "no PEM", "CSR-03": "PEM that is no PKCS#10 request", "CSR-04": "nothing"}[id]
		s.Check(id, "spec.request: refused when it holds "+what, func(t *T) {
			t.POST(CSRs, t.CSR(SignerOther, ClientUsages, Someone).Set("spec.request", bad)).ClientError()
		})
	}
	s.Check("CSR-05", "spec.signerName: required in v1", func(t *T) {
		body := t.CSR(SignerOther, ClientUsages, Someone)
		delete(body.Map("spec"), "signerName")
		t.POST(CSRs, body).Status(422, "Invalid")
	})
	s.Check("CSR-06", "spec.usages: required in v1", func(t *T) {
		body := t.CSR(SignerOther, ClientUsages, Someone)
		delete(body.Map("spec"), "usages")
		t.POST(CSRs, body).Status(422, "Invalid")
	})
	s.Check("CSR-07", "spec.usages: only known usages", func(t *T) {
		t.POST(CSRs, t.CSR(SignerOther, "[client auth, world domination]", Someone)).Status(422, "Invalid")
	})
	s.Check("CSR-08", "spec.groups: groups of the requester", func(t *T) {
		alice := Identity{Token: "alice-token"}
		o := t.POST(CSRs, t.CSR(SignerOther, ClientUsages, Someone).Set("spec.groups", []string{"liars"}), As(alice)).OK().Obj()
		t.SameSet("spec.groups", o.Strs("spec.groups"), "team-a", "team-b", "system:authenticated")
	})
	s.Check("CSR-09", "requests with signer platform.io/legacy-unknown cannot be created through v1", func(t *T) {
		t.POST(CSRs, t.CSR("platform.io/legacy-unknown", ClientUsages, Someone)).ClientError()
	})
	s.Check("CSR-10", "update of the approval subresource adding condition Approved", func(t *T) {
		_, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		o := t.Approve(path)
		t.Eq("type", o.Str("status.conditions.0.type"), "Approved")
		t.Eq("status", o.Str("status.conditions.0.status"), "True")
		t.Eq("reason", o.Str("status.conditions.0.reason"), "Conformance")
		t.Eq("message", o.Str("status.conditions.0.message"), "set by the conformance suite")
		t.True(o.Has("status.conditions.0.lastUpdateTime"), "lastUpdateTime to be set")
		t.True(o.Has("status.conditions.0.lastTransitionTime"), "lastTransitionTime to be set")
	})
	s.Check("CSR-11", "status.conditions: no duplicate type", func(t *T) {
		o, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		t.PUT(path+"/approval", WithCondition(WithCondition(o, "Approved"), "Approved")).ClientError()
	})
	s.Check("CSR-12", "status.conditions: status required in v1", func(t *T) {
		o, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		body := o.Copy().Set("status.conditions", []Obj{{"type": "Approved", "reason": "x"}})
		t.PUT(path+"/approval", body).Status(422, "Invalid")
	})
	s.Check("CSR-13", "signer updates status with a certificate: completed", func(t *T) {
		_, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		chain := SelfSigned()
		t.PUT(path+"/status", WithCertificate(t.Approve(path), chain)).OK()
		t.Eq("status.certificate", FromB64(t.GET(path).OK().Obj().Str("status.certificate")), string(chain))
	})
	for _, c := range []struct {
		id, rule string
		chain    func() []byte
	}{
		{"CSR-14", "every PEM block has the label CERTIFICATE", func() []byte {
			return bytes.ReplaceAll(SelfSigned(), []byte("CERTIFICATE"), []byte("PUBLIC KEY"))
		}},
		{"CSR-15", "a second block with another label is refused too", func() []byte {
			return append(SelfSigned(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})...)
		}},
		{"CSR-16", "PEM blocks carry no headers", func() []byte {
			b, _ := pem.Decode(SelfSigned())
			b.Headers = map[string]string{"Note": "x"}
			return pem.EncodeToMemory(b)
		}},
		{"CSR-17", "each block holds an ASN.1 Certificate", func() []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("not DER")})
		}},
	} {
		s.Check(c.id, "status.certificate: "+c.rule, func(t *T) {
			_, path := t.NewCSR(SignerOther, ClientUsages, Someone)
			t.PUT(path+"/status", WithCertificate(t.Approve(path), c.chain())).ClientError()
			t.Eq("status.certificate", t.GET(path).OK().Obj().Str("status.certificate"), "")
		})
	}
	s.Check("CSR-18", "approve: needs update on certificatesigningrequests/approval", func(t *T) {
		user := t.User()
		o, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		t.Grant(user.Name, `[{apiGroups: [certificates.platform.io], resources: [signers], resourceNames: ["example.com/robots"], verbs: [approve]}]`)
		t.PUT(path+"/approval", WithCondition(o, "Approved"), As(user)).Status(403, "Forbidden")
	})
	for _, c := range []struct{ id, name string }{{"CSR-19", "example.com/robots"}, {"CSR-20", "example.com/*"}} {
		s.Check(c.id, "approve: approve on signers with resourceName "+c.name, func(t *T) {
			user := t.User()
			o, path := t.NewCSR(SignerOther, ClientUsages, Someone)
			t.Grant(user.Name, `[{apiGroups: [certificates.platform.io], resources: [certificatesigningrequests/approval], verbs: [update]}]`)
			t.Sleep(500 * time.Millisecond)
			t.PUT(path+"/approval", WithCondition(o, "Approved"), As(user)).Status(403, "Forbidden")
			t.Grant(user.Name, `[{apiGroups: [certificates.platform.io], resources: [signers], resourceNames: ["`+c.name+`"], verbs: [approve]}]`)
			t.Allowed(func() *Resp { return t.PUT(path+"/approval", WithCondition(o, "Approved"), As(user)) }).OK()
		})
	}
	s.Check("CSR-21", "Pending, Approved or Denied without a change for 1 hour: deleted (here: not earlier)", func(t *T) {
		_, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		t.Sleep(5 * time.Second)
		t.GET(path).Is(200)
	})
	s.Check("CSR-22", "Pending without a change for 1 hour: deleted", func(t *T) {
		_, path := t.NewCSR(SignerOther, ClientUsages, Someone)
		t.Gone(path, 80*time.Minute)
	}, Slow(85*time.Minute))
	s.Check("CSR-23", "Approved without a certificate, and Denied, for 1 hour: deleted", func(t *T) {
		_, approved := t.NewCSR(SignerOther, ClientUsages, Someone)
		t.Approve(approved)
		o, denied := t.NewCSR(SignerOther, ClientUsages, Someone)
		t.PUT(denied+"/approval", WithCondition(o, "Denied")).OK()
		t.Gone(approved, 80*time.Minute)
		t.Gone(denied, time.Minute)
	}, Slow(85*time.Minute))
}
