package checks

import (
	"crypto/x509"
	"strings"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func signers() {
	s := Section("Built-in signers")

	s.Check("SIGN-01", "apiserver-client: approved and signed; the certificate has the requested subject", func(t *T) {
		_, path := t.NewCSR(SignerClient, ClientUsages, Someone)
		cert := t.Leaf(t.Issued(path, 30*time.Second))
		t.Eq("common name", cert.Subject.CommonName, "someone")
		t.Eq("organization", cert.Subject.Organization, []string{"people"})
		t.True(!cert.IsCA, "the CA bit not to be set")
	})
	s.Check("SIGN-02", "apiserver-client: never approved automatically", func(t *T) {
		_, path := t.NewCSR(SignerClient, ClientUsages, Someone)
		t.Sleep(SigningDelay)
		o := t.GET(path).OK().Obj()
		t.Eq("number of conditions", len(o.List("status.conditions")), 0)
		t.Eq("status.certificate", o.Str("status.certificate"), "")
	})
	s.Check("SIGN-03", "apiserver-client: must include client auth", func(t *T) {
		_, path := t.NewCSR(SignerClient, "[digital signature, key encipherment]", Someone)
		t.NeverIssued(path, SigningDelay)
	})
	s.Check("SIGN-04", "apiserver-client-nodeagent: a right request is signed once approved", func(t *T) {
		_, path := t.NewCSR(SignerNode, ClientUsages, SomeNode)
		cert := t.Leaf(t.Issued(path, 30*time.Second))
		t.Eq("common name", cert.Subject.CommonName, "system:node:n1")
		t.Eq("organization", cert.Subject.Organization, []string{"system:nodes"})
	})
	for _, c := range []struct {
		id, signer, rule, usages string
		request                  Request
	}{
		{"SIGN-05", SignerNode, "organization exactly system:nodes", ClientUsages, Request{CN: "system:node:n1", Orgs: []string{"system:nodes", "more"}}},
		{"SIGN-06", SignerNode, "common name starts with system:node:", ClientUsages, Request{CN: "node:n1", Orgs: []string{"system:nodes"}}},
		{"SIGN-07", SignerNode, "key usages exactly key encipherment, digital signature, client auth", "[client auth, digital signature, key encipherment, server auth]", SomeNode},
		{"SIGN-08", SignerServing, "at least one DNS or IP subjectAltName required", ServingUsages, SomeNode},
		{"SIGN-09", SignerServing, "key usages exactly key encipherment, digital signature, server auth", ClientUsages, Request{CN: "system:node:n1", Orgs: []string{"system:nodes"}, DNS: []string{"n1"}}},
	} {
		s.Check(c.id, strings.TrimPrefix(c.signer, "platform.io/")+": "+c.rule, func(t *T) {
			r := t.POST(CSRs, t.CSR(c.signer, c.usages, c.request))
			if r.Code >= 400 { // rejecting the request is also correct
				r.ClientError()
				return
			}
			t.NeverIssued(CSRs+"/"+r.Made().Name(), SigningDelay)
		})
	}
	s.Check("SIGN-10", "nodeagent-serving: key usage and DNS/IP subjectAltName honored", func(t *T) {
		_, path := t.NewCSR(SignerServing, ServingUsages, Request{CN: "system:node:n2", Orgs: []string{"system:nodes"}, DNS: []string{"n2.example.com"}, IPs: []string{"10.1.2.3"}})
		cert := t.Leaf(t.Issued(path, 30*time.Second))
		t.Eq("DNS names", cert.DNSNames, []string{"n2.example.com"})
		t.True(len(cert.IPAddresses) == 1 && cert.IPAddresses[0].String() == "10.1.2.3", "the address 10.1.2.3, got %v", cert.IPAddresses)
		t.Eq("extended key usage", cert.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth})
		t.True(!cert.IsCA, "the CA bit not to be set")
	})
	s.Check("SIGN-11", "certificate lifetime: default 1 year", func(t *T) {
		_, path := t.NewCSR(SignerClient, ClientUsages, Someone)
		cert := t.Leaf(t.Issued(path, 30*time.Second))
		life := cert.NotAfter.Sub(time.Now())
		t.True((life-365*24*time.Hour).Abs() < 24*time.Hour, "an end about one year from now, got %v", cert.NotAfter)
	})
	// asNode creates the request of a node as a user with permission for a subresource of
	// requests; "" for none.
	asNode := func(t *T, user, permission string, request Request) (path string) {
		subresources := "certificatesigningrequests"
		if permission != "" {
			subresources += ", certificatesigningrequests/" + permission
		}
		t.Grant(user, "[{apiGroups: [certificates.platform.io], resources: ["+subresources+"], verbs: [create]}]")
		made := t.Allowed(func() *Resp {
			return t.POST(CSRs, t.CSR(SignerNode, ClientUsages, request), Impersonate(user, "system:nodes"))
		}).Made()
		path = CSRs + "/" + made.Name()
		t.Cleanup(func() { t.DELETE(path, nil) })
		return path
	}
	signedAlone := func(t *T, path string) {
		t.Until(60*time.Second, "the request is approved and signed without anybody", func() bool {
			o := t.GET(path).OK().Obj()
			return o.Str("status.certificate") != "" && o.Str("status.conditions.0.type") == "Approved" && o.Str("status.conditions.0.reason") == "AutoApproved"
		})
	}
	s.Check("SIGN-12", "apiserver-client-nodeagent: approved automatically for who may create certificatesigningrequests/nodeclient", func(t *T) {
		signedAlone(t, asNode(t, t.Name("bootstrap"), "nodeclient", SomeNode))
	})
	s.Check("SIGN-13", "apiserver-client-nodeagent: a node that may create certificatesigningrequests/selfnodeclient gets its own certificate", func(t *T) {
		user := "system:node:" + t.Name("n")
		signedAlone(t, asNode(t, user, "selfnodeclient", Request{CN: user, Orgs: []string{"system:nodes"}}))
	})
	s.Check("SIGN-14", "apiserver-client-nodeagent: without permission, or for another node, nobody approves", func(t *T) {
		user := "system:node:" + t.Name("n")
		paths := []string{asNode(t, t.Name("stranger"), "", SomeNode), asNode(t, user, "selfnodeclient", Request{CN: "system:node:other", Orgs: []string{"system:nodes"}})}
		t.Sleep(SigningDelay)
		for _, path := range paths {
			t.Eq("number of conditions", len(t.GET(path).OK().Obj().List("status.conditions")), 0)
		}
	})
}
