package harness

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Small building blocks that many checks share.

// CM creates a ConfigMap in the check's namespace; data are key, value pairs.
func (t *T) CM(name string, data ...string) Obj {
	return t.POST(t.In("configmaps"), ConfigMap(name, data...)).Made()
}

// ConfigMap returns a ConfigMap; data are key, value pairs.
func ConfigMap(name string, data ...string) Obj {
	o := YAML(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}`, name)
	for i := 0; i+1 < len(data); i += 2 {
		o.Set("data."+data[i], data[i+1])
	}
	return o
}

// CMs creates n ConfigMaps named prefix-00, prefix-01 ... and returns their names.
func (t *T) CMs(prefix string, n int) (names []string) {
	for i := range n {
		name := fmt.Sprintf("%s-%02d", prefix, i)
		t.CM(name, "i", fmt.Sprint(i))
		names = append(names, name)
	}
	return names
}

// Leases is the type used where a collection must hold nothing but the objects
// of the check: no control plane puts Leases in a fresh namespace.
const Leases = "coordination.platform.io/v1/leases"

// Lease creates a Lease in the check's namespace.
func (t *T) Lease(name string) Obj {
	return t.POST(t.In(Leases), LeaseOf(name, "one")).Made()
}

// LeaseOf returns a Lease with a holder.
func LeaseOf(name, holder string) Obj {
	return YAML(`
apiVersion: coordination.platform.io/v1
kind: Lease
metadata: {name: %s}
spec: {holderIdentity: %s}`, name, holder)
}

// LeasesNamed creates n Leases named prefix-00, prefix-01 ... and returns their names.
func (t *T) LeasesNamed(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, t.Lease(fmt.Sprintf("%s-%02d", prefix, i)).Name())
	}
	return names
}

// Gone waits until a path answers 404.
func (t *T) Gone(path string, d time.Duration) {
	t.Until(d, "GET "+path+" answers 404", func() bool { return t.GET(path).Code == 404 })
}

// Pod returns a Pod with one container; the check's namespace is made ready
// for pods by PodReady.
func Pod(name string) Obj {
	return YAML(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  automountServiceAccountToken: false
  containers: [{name: main, image: "registry.example.com/app:1", imagePullPolicy: IfNotPresent}]`, name)
}

// PodReady waits for the default service account of the check's namespace,
// without which the ServiceAccount plugin may reject pods.
func (t *T) PodReady() {
	path := t.In("serviceaccounts") + "/default"
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); t.Sleep(100 * time.Millisecond) {
		if t.GET(path).Code == 200 {
			return
		}
	}
}

// Deployment returns an apps/v1 Deployment.
func Deployment(name string, replicas int) Obj {
	return YAML(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, labels: {app: %s}}
spec:
  replicas: %d
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec: {containers: [{name: main, image: "registry.example.com/app:1"}]}`, name, name, replicas, name, name)
}

// ---- custom resources ----

// CRD is a custom resource type made for one check.
type CRD struct {
	Group, Plural, Kind, Version string
	Path                         string // of the CustomResourceDefinition
}

// Resource is the name All and In take.
func (c CRD) Resource() string { return c.Group + "/" + c.Version + "/" + c.Plural }

// Object returns a YAML body of the type.
func (c CRD) Object(name, rest string) string {
	return fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: %s}\n%s", c.Group, c.Version, c.Kind, name, rest)
}

// CRD makes a namespace-scoped custom resource type of version v1. The schema
// is a YAML flow text for openAPIV3Schema; extra is added to the version.
func (t *T) CRD(schema string, extra ...string) CRD {
	return t.ScopedCRD("Namespaced", schema, extra...)
}

// ScopedCRD is CRD with the scope given.
func (t *T) ScopedCRD(scope, schema string, extra ...string) CRD {
	c := t.makeCRD(scope, schema, extra...)
	t.Cleanup(func() { t.DELETE(c.Path, nil) })
	return c
}

// ForeverCRD is CRD without removal at the end of the check.
func (t *T) ForeverCRD(schema string) CRD { return t.makeCRD("Namespaced", schema) }

func (t *T) makeCRD(scope, schema string, extra ...string) CRD {
	c := CRD{Group: "x" + RandomID(6) + ".example.com", Plural: "widgets", Kind: "Widget", Version: "v1"}
	c.Path = All("apiextensions.platform.io/v1/customresourcedefinitions") + "/widgets." + c.Group
	t.POST(All("apiextensions.platform.io/v1/customresourcedefinitions"), c.definition(scope, schema, extra...)).Made()
	t.Served(c)
	return c
}

// definition returns the CustomResourceDefinition itself.
func (c CRD) definition(scope, schema string, extra ...string) Obj {
	return YAML(`
apiVersion: apiextensions.platform.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%s}
spec:
  group: %s
  scope: %s
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: %s}
    %s`, c.Group, c.Group, scope, schema, strings.Join(extra, "\n    "))
}

// Served waits until a custom resource type can be listed and written.
func (t *T) Served(c CRD) {
	t.Until(20*time.Second, "the custom resource type "+c.Resource()+" is served", func() bool {
		if t.GET(All(c.Resource())).Code != 200 {
			return false
		}
		for _, cond := range t.GET(c.Path).Obj().List("status.conditions") {
			if cond.Str("type") == "Established" {
				return cond.Str("status") == "True"
			}
		}
		return false
	})
}

// AnySchema accepts every field.
const AnySchema = `{type: object, x-platform-preserve-unknown-fields: true}`

// ---- identities ----

// WhoAmI returns the attributes the service gives to a requester: username,
// uid, groups, extra. The answer is nil when the request got 401.
func (t *T) WhoAmI(opts ...Opt) Obj {
	r := t.POST(All("certificates.platform.io/v1/certificatesigningrequests")+"?dryRun=All", YAML(`
apiVersion: certificates.platform.io/v1
kind: CertificateSigningRequest
metadata: {name: %s}
spec: {signerName: example.com/whoami, usages: [client auth], request: %s}`, t.Name("whoami"), t.Fix.WhoAmI), opts...)
	if r.Code == 401 {
		return nil
	}
	return r.OK().Obj().Map("spec")
}

// Grant grants a user rules (a YAML list) cluster-wide.
func (t *T) Grant(user, rules string) { t.grant("User", user, "", rules) }

// GrantGroup is Grant for a group.
func (t *T) GrantGroup(group, rules string) { t.grant("Group", group, "", rules) }

// GrantIn is Grant within a namespace.
func (t *T) GrantIn(ns, user, rules string) { t.grant("User", user, ns, rules) }

func (t *T) grant(subject, name, ns, rules string) {
	role := t.Name("grant")
	rbac := "rbac.authorization.platform.io/v1"
	collection := func(r string) string { return All(rbac + "/cluster" + r) }
	kind := "Cluster"
	if ns != "" {
		collection, kind = func(r string) string { return In(ns, rbac+"/"+r) }, ""
	}
	t.POST(collection("roles"), YAML("apiVersion: %s\nkind: %sRole\nmetadata: {name: %s}\nrules: %s", rbac, kind, role, rules)).OK()
	t.POST(collection("rolebindings"), YAML(`
apiVersion: %s
kind: %sRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.platform.io, kind: %sRole, name: %s}
subjects: [{apiGroup: rbac.authorization.platform.io, kind: %s, name: "%s"}]`, rbac, kind, role, kind, role, subject, name)).OK()
}

// Allowed waits until a request is no longer forbidden (grants may take a
// moment to be seen) and returns its response.
func (t *T) Allowed(do func() *Resp) *Resp {
	var r *Resp
	for end := time.Now().Add(5 * time.Second); ; t.Sleep(50 * time.Millisecond) {
		if r = do(); r.Code != 403 || time.Now().After(end) {
			return r
		}
	}
}

// ReadConfigMaps is a rule list that allows reading ConfigMaps.
const ReadConfigMaps = `[{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]`

// ---- certificate signing requests ----

// CSRs is the collection of certificate signing requests.
var CSRs = All("certificates.platform.io/v1/certificatesigningrequests")

// Usages of the built-in signers.
const (
	ClientUsages  = "[digital signature, key encipherment, client auth]"
	ServingUsages = "[digital signature, key encipherment, server auth]"
)

// CSR returns a CertificateSigningRequest.
func (t *T) CSR(signer, usages string, request Request) Obj {
	return YAML(`
apiVersion: certificates.platform.io/v1
kind: CertificateSigningRequest
metadata: {name: %s}
spec: {signerName: "%s", usages: %s, request: %s}`,
		t.Name("csr"), signer, usages, base64.StdEncoding.EncodeToString(request.PEM()))
}

// NewCSR creates a CertificateSigningRequest and returns it and its path.
func (t *T) NewCSR(signer, usages string, request Request) (Obj, string) {
	o := t.POST(CSRs, t.CSR(signer, usages, request)).Made()
	t.Cleanup(func() { t.DELETE(CSRs+"/"+o.Name(), nil) })
	return o, CSRs + "/" + o.Name()
}

// WithCondition returns a copy of a CSR with a condition added.
func WithCondition(csr Obj, conditionType string) Obj {
	c := csr.Copy()
	conditions, _ := c.At("status.conditions").([]any)
	return c.Set("status.conditions", append(conditions, map[string]any{
		"type": conditionType, "status": "True", "reason": "Conformance", "message": "set by the conformance suite",
	}))
}

// Approve sets condition Approved on a CSR at path through its approval
// subresource, unless the control plane has done so on its own.
func (t *T) Approve(path string) Obj {
	for {
		csr := t.GET(path).OK().Obj()
		if approved(csr) {
			return csr
		}
		r := t.PUT(path+"/approval", WithCondition(csr, "Approved"))
		if r.Code == 409 { // changed in between
			t.Sleep(50 * time.Millisecond)
			continue
		}
		csr = r.OK().Obj()
		t.True(approved(csr), "a condition Approved after the update of the approval subresource")
		return csr
	}
}

func approved(csr Obj) bool {
	return slices.ContainsFunc(csr.List("status.conditions"), func(c Obj) bool { return c.Str("type") == "Approved" })
}

// Issued approves a CSR and waits for its certificate, or fails after d.
func (t *T) Issued(path string, d time.Duration) []byte {
	t.Approve(path)
	var cert []byte
	t.Until(d, "status.certificate of "+path+" is set by the signer", func() bool {
		cert, _ = base64.StdEncoding.DecodeString(t.GET(path).OK().Obj().Str("status.certificate"))
		return len(cert) > 0
	})
	return cert
}

// NeverIssued approves a CSR and fails if a certificate appears within d.
func (t *T) NeverIssued(path string, d time.Duration) {
	t.Approve(path)
	for end := time.Now().Add(d); time.Now().Before(end); t.Sleep(250 * time.Millisecond) {
		if c := t.GET(path).OK().Obj().Str("status.certificate"); c != "" {
			t.Failf("%s: expected the signer to issue no certificate, got one", path)
		}
	}
}

// ---- tokens ----

// B64 is the standard base64 of a text.
func B64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// FromB64 decodes standard base64; "" if it is wrong.
func FromB64(s string) string { b, _ := base64.StdEncoding.DecodeString(s); return string(b) }

// BootstrapToken creates a bootstrap token secret; more are key, value pairs of
// its data. It returns the token and the path of the secret.
func (t *T) BootstrapToken(more ...string) (token, path string) {
	id, secret := RandomID(6), RandomID(16)
	o := YAML(`
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-%s, namespace: platform-system}
type: bootstrap.platform.io/token
stringData: {token-id: "%s", token-secret: "%s"}`, id, id, secret)
	for i := 0; i+1 < len(more); i += 2 {
		o.Set("stringData."+more[i], more[i+1])
	}
	secrets := In("platform-system", "secrets")
	t.POST(secrets, o).Made()
	path = secrets + "/" + o.Name()
	t.Cleanup(func() { t.DELETE(path, nil) })
	return id + "." + secret, path
}

// Accepted waits until a bearer token authenticates, and returns who it is.
func (t *T) Accepted(token string) Obj {
	var who Obj
	t.Until(10*time.Second, "the bearer token "+short(token, 24)+" is accepted", func() bool {
		who = t.WhoAmI(As(Identity{Token: token}))
		return who != nil
	})
	return who
}

// Rejected waits until a bearer token gets 401.
func (t *T) Rejected(token string) {
	t.Until(20*time.Second, "the bearer token "+short(token, 24)+" gets 401", func() bool {
		return t.WhoAmI(As(Identity{Token: token})) == nil
	})
}

// ServiceAccountToken makes a service account with a token secret and returns
// the token, once the control plane has filled it in, and the secret's path.
func (t *T) ServiceAccountToken(account string) (token, path string) {
	t.POST(t.In("serviceaccounts"), YAML(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}}`, account)).OK()
	return t.TokenSecret(account)
}

// TokenSecret makes a token secret for an existing service account.
func (t *T) TokenSecret(account string) (token, path string) {
	name := t.Name(account)
	t.POST(t.In("secrets"), YAML(`
apiVersion: v1
kind: Secret
metadata: {name: %s, annotations: {platform.io/service-account.name: %s}}
type: platform.io/service-account-token`, name, account)).OK()
	path = t.In("secrets") + "/" + name
	t.Until(20*time.Second, "the token secret "+path+" is filled in", func() bool {
		token = FromB64(t.GET(path).OK().Obj().Str("data.token"))
		return token != ""
	})
	return token, path
}

// Esc escapes a query parameter.
func Esc(s string) string { return url.QueryEscape(s) }

// Ago returns an RFC 3339 time d before now (after, when d is negative).
func Ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
