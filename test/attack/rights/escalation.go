// Package rights holds the trials that try to gain permissions, secrets or another
// identity. Each tests a finding of the security review, or a protection that the review
// confirmed. Names are those of the platform vocabulary, which the target has to use.
package rights

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// All returns the trials of this package.
func All() []attack.Trial {
	return slices.Concat(escalations(), busTrials(), held(), identities())
}

const rbac = "/apis/rbac.authorization.platform.io/v1"

func escalations() []attack.Trial {
	return []attack.Trial{
		{Name: "DefinitionOverBuiltin", Finding: "A1", Run: definitionOverBuiltin},
		{Name: "SelfApprovedCertificate", Finding: "A1", Run: selfApprovedCertificate},
		{Name: "DefinitionDeletesBuiltin", Finding: "A2", Run: definitionDeletesBuiltin},
		{Name: "AggregationLabel", Finding: "A3", Run: aggregationLabel},
		{Name: "ConnectThroughWatchPath", Finding: "A6", Run: connectThroughWatchPath},
		{Name: "ImpersonatedAnonymous", Finding: "A6", Run: impersonatedAnonymous},
		{Name: "LongAuditID", Finding: "A6", Run: longAuditID},
	}
}

// builtin is a built-in type that a definition tries to replace.
type builtin struct {
	group, plural, kind, scope string
	sample                     string // fields of an object except its metadata; empty: no object
}

// builtins are types on whose objects the suite itself does not depend.
func builtins() []builtin {
	return []builtin{
		{"storage.platform.io", "storageclasses", "StorageClass", "Cluster", `,"provisioner":"a.example.com/b"`},
		{"scheduling.platform.io", "priorityclasses", "PriorityClass", "Cluster", `,"value":1`},
		{"networking.platform.io", "ingressclasses", "IngressClass", "Cluster", `,"spec":{"controller":"example.com/a"}`},
	}
}

func (b builtin) path(version string) string {
	return "/apis/" + b.group + "/" + version + "/" + b.plural
}

// definition returns a definition of the type, with the annotation for approved groups.
func (b builtin) definition(plural, version string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.platform.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"%[1]s.%[2]s","annotations":{"api-approved.platform.io":"https://example.com/1"}},
		"spec":{"group":%[2]q,"scope":%[4]q,"names":{"plural":%[1]q,"kind":%[3]q},
		"versions":[{"name":%[5]q,"served":true,"storage":true,"schema":{"openAPIV3Schema":%[6]s}}]}}`,
		plural, b.group, b.kind, b.scope, version, attack.OpenSchema)
}

const definer = "create,delete,get,list"

// definitionOverBuiltin defines a custom type in the group of a built-in one, in another
// version and with another plural. It must not be served.
func definitionOverBuiltin(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule(definer, "apiextensions.platform.io", "customresourcedefinitions"))
	if err != nil {
		return err
	}
	for _, b := range builtins() {
		for _, plural := range []string{b.plural, "my" + b.plural} {
			answer, err := mallory.Send(ctx, http.MethodPost, attack.Definitions, b.definition(plural, "v9"))
			if err != nil {
				return err
			}
			if answer.Code/100 != 2 {
				continue
			}
			attack.Wait(ctx, time.Second) // it would be established by now
			served, err := t.Root().Send(ctx, http.MethodGet, "/apis/"+b.group+"/v9/"+plural, "")
			_, _ = mallory.Send(ctx, http.MethodDelete, attack.Definitions+"/"+plural+"."+b.group, "")
			if err != nil {
				return err
			}
			if served.Code == http.StatusOK {
				return fmt.Errorf("a custom type %s of kind %s in %s is served beside the built-in one", plural, b.kind, b.group)
			}
		}
	}
	return nil
}

// definitionDeletesBuiltin creates and deletes definitions of built-in types, in another
// version and in the built-in one. The objects must not be deleted.
func definitionDeletesBuiltin(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule(definer, "apiextensions.platform.io", "customresourcedefinitions"))
	if err != nil {
		return err
	}
	for _, b := range builtins() {
		for _, version := range []string{"v9", "v1"} {
			name := attack.Unique("precious")
			body := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":%q}%s}`, b.group, b.kind, name, b.sample)
			if err := t.Root().Create(ctx, b.path("v1"), body); err != nil {
				return err
			}
			answer, err := mallory.Send(ctx, http.MethodPost, attack.Definitions, b.definition(b.plural, version))
			if err != nil {
				return err
			}
			if answer.Code/100 == 2 {
				if err := deleteDefinition(ctx, mallory.Actor, b.plural+"."+b.group); err != nil {
					return err
				}
			}
			left, err := attack.Names(ctx, t.Root(), b.path("v1"))
			if err != nil {
				return err
			}
			if !slices.Contains(left, name) {
				return fmt.Errorf("a definition of %s in version %s took the objects of the built-in type with it", b.plural, version)
			}
			if err := attack.Expect(ctx, t.Root(), attack.Request(http.MethodDelete, b.path("v1")+"/"+name, ""), 200); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteDefinition deletes a definition and waits up to 3 s until it is gone.
func deleteDefinition(ctx context.Context, a *attack.Actor, name string) error {
	if _, err := a.Send(ctx, http.MethodDelete, attack.Definitions+"/"+name, ""); err != nil {
		return err
	}
	_ = attack.Eventually(ctx, 3*time.Second, "it is gone", func() (bool, error) {
		answer, err := a.Send(ctx, http.MethodGet, attack.Definitions+"/"+name, "")
		return answer.Code == http.StatusNotFound, err
	})
	return nil
}

// selfApprovedCertificate requests a certificate of system:masters and approves it through
// a custom type with the names of the built-in one.
func selfApprovedCertificate(ctx context.Context, t *attack.Target) error {
	const group = "certificates.platform.io"
	b := builtin{group: group, plural: "certificatesigningrequests", kind: "CertificateSigningRequest", scope: "Cluster"}
	mallory, err := t.User(ctx, attack.Rule(definer, "apiextensions.platform.io", "customresourcedefinitions")+","+
		attack.Rule("create,get,update,patch", group, b.plural))
	if err != nil {
		return err
	}
	csr, err := signingRequest("mallory", "system:masters")
	if err != nil {
		return err
	}
	answer, err := mallory.Send(ctx, http.MethodPost, attack.Definitions, b.definition(b.plural, "v9"))
	if err != nil {
		return err
	}
	if answer.Code/100 == 2 {
		defer func() { _ = deleteDefinition(ctx, mallory.Actor, b.plural+"."+group) }()
		attack.Wait(ctx, time.Second)
	}
	for _, version := range []string{"v9", "v1", "v1beta1"} {
		name := attack.Unique("self")
		body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":%q},
			"spec":{"request":%q,"signerName":"platform.io/legacy-unknown","usages":["client auth"]},
			"status":{"conditions":[{"type":"Approved","status":"True","reason":"me","message":"me"}]}}`, group, version, b.kind, name, csr)
		made, err := mallory.Send(ctx, http.MethodPost, b.path(version), body)
		if err != nil {
			return err
		}
		for _, path := range []string{"", "/status", "/approval"} {
			_, _ = mallory.Send(ctx, http.MethodPut, b.path(version)+"/"+name+path, body)
		}
		if made.Code/100 != 2 {
			continue
		}
		attack.Wait(ctx, time.Second)
		if err := unsigned(ctx, t, b.path("v1")+"/"+name); err != nil {
			return fmt.Errorf("through %s: %w", version, err)
		}
	}
	return nil
}

// signingRequest returns a PKCS#10 request in the encoding of spec.request.
func signingRequest(name string, organizations ...string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: name, Organization: organizations}}, key)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return base64.StdEncoding.EncodeToString(block), err
}

// unsigned returns an error if a signing request is approved or has a certificate.
func unsigned(ctx context.Context, t *attack.Target, path string) error {
	answer, err := t.Root().Send(ctx, http.MethodGet, path, "")
	if err != nil || answer.Code != http.StatusOK {
		return err
	}
	var request struct {
		Status struct {
			Certificate string
			Conditions  []any
		}
	}
	if err := json.Unmarshal([]byte(answer.Body), &request); err != nil {
		return err
	}
	if request.Status.Certificate != "" || len(request.Status.Conditions) > 0 {
		return errors.New("a user without approval rights has a request approved or signed")
	}
	return nil
}

// aggregationLabel tries to gain permissions by a label that aggregates a role into
// another one.
func aggregationLabel(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("get,list,update,patch", "rbac.authorization.platform.io", "clusterroles"))
	if err != nil {
		return err
	}
	label, root := attack.Unique("aggregate"), t.Root()
	role := func(name, more string) string {
		return fmt.Sprintf(`{"apiVersion":"rbac.authorization.platform.io/v1","kind":"ClusterRole","metadata":{"name":%q}%s}`, name, more)
	}
	sum, strong := "sum-"+label, "strong-"+label
	for _, r := range []cluster.Request{
		attack.Request(http.MethodPost, rbac+"/clusterroles", role(sum, `,"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"`+label+`":"true"}}]},"rules":[]`)),
		attack.Request(http.MethodPost, rbac+"/clusterroles", role(strong, `,"rules":[`+attack.Rule("get,list", "", "secrets")+`]`)),
		attack.Request(http.MethodPost, rbac+"/clusterrolebindings", fmt.Sprintf(`{"apiVersion":"rbac.authorization.platform.io/v1","kind":"ClusterRoleBinding",
			"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.platform.io","kind":"ClusterRole","name":%q},
			"subjects":[{"kind":"ServiceAccount","name":"intruder","namespace":%q}]}`, sum, sum, mallory.Namespace)),
	} {
		if err := root.Must(ctx, r, nil); err != nil {
			return err
		}
	}
	tries := []cluster.Request{
		{Method: http.MethodPatch, Type: "application/merge-patch+json", Body: `{"metadata":{"labels":{"` + label + `":"true"}}}`},
		{Method: http.MethodPatch, Type: "application/json-patch+json", Body: `[{"op":"add","path":"/metadata/labels","value":{"` + label + `":"true"}}]`},
		{Method: http.MethodPatch, Type: "application/strategic-merge-patch+json", Body: `{"metadata":{"labels":{"` + label + `":"true"}}}`},
		{Method: http.MethodPut, Body: strings.Replace(role(strong, `,"rules":[`+attack.Rule("get,list", "", "secrets")+`]`),
			`"metadata":{`, `"metadata":{"labels":{"`+label+`":"true"},`, 1)},
	}
	for _, r := range tries {
		r.Path = rbac + "/clusterroles/" + strong
		if err := attack.Expect(ctx, mallory.Actor, r, http.StatusForbidden); err != nil {
			return err
		}
	}
	return attack.Expect(ctx, mallory.Actor, cluster.Request{Path: "/api/v1/secrets"}, http.StatusForbidden)
}

// connectThroughWatchPath tries to reach exec and similar subresources with the verb watch.
func connectThroughWatchPath(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("watch", "*", "*"))
	if err != nil {
		return err
	}
	pods := "/namespaces/" + mallory.Namespace + "/pods"
	body := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"a"}]}}`
	if err := t.Root().Create(ctx, "/api/v1"+pods, body); err != nil {
		return err
	}
	for _, sub := range []string{"exec", "attach", "portforward", "proxy"} {
		// Forbidden or not found means not reached; any other status means reached.
		if err := attack.Expect(ctx, mallory.Actor, cluster.Request{Path: "/api/v1/watch" + pods + "/p/" + sub + "?command=id"},
			http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed); err != nil {
			return err
		}
	}
	return nil
}

// impersonatedAnonymous impersonates system:unauthenticated: the user must not get
// system:authenticated too.
func impersonatedAnonymous(ctx context.Context, t *attack.Target) error {
	r := attack.Request(http.MethodPost, "/apis/authorization.platform.io/v1/selfsubjectaccessreviews",
		`{"apiVersion":"authorization.platform.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"verb":"get","path":"/api"}}}`)
	r.Header = http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"system:unauthenticated"}}
	return attack.Expect(ctx, t.Root(), r, http.StatusForbidden)
}

// longAuditID sends a long Audit-Id, which must not be logged in full.
func longAuditID(ctx context.Context, t *attack.Target) error {
	answer, err := t.Root().Do(ctx, cluster.Request{Path: "/api", Header: http.Header{"Audit-Id": {strings.Repeat("a", 4000)}}})
	if err != nil {
		return err
	}
	if got := len(answer.Header.Get("Audit-Id")); got > 64 {
		return fmt.Errorf("an Audit-Id of %d characters is kept", got)
	}
	return nil
}
