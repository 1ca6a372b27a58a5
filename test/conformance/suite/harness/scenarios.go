package harness

// Scenarios and objects that checks of several sections share.

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// WatchFrom lists a collection and watches it from the list's version on.
func (t *T) WatchFrom(path string) *Watcher {
	list := t.GET(path).OK().Obj()
	return t.Watch(path + "?resourceVersion=" + Esc(list.RV()))
}

// AsTable is the media type of the specification.
const AsTable = "application/json;as=Table;g=meta.platform.io;v=v1beta1"

// Table gets a path as a Table and checks its form.
func (t *T) Table(path string) Obj {
	o := t.GET(path, Accept(AsTable)).Is(200).Obj()
	t.Eq("kind", o.Str("kind"), "Table")
	t.Eq("apiVersion", o.Str("apiVersion"), "meta.platform.io/v1beta1")
	t.True(len(o.List("columnDefinitions")) > 0, "column definitions")
	for _, c := range o.List("columnDefinitions") {
		t.True(c.Str("name") != "" && c.Str("type") != "", "a name and a type in each column definition, got %v", c)
	}
	return o
}

// Columns returns the column names of a Table.
func Columns(table Obj) (names []string) {
	for _, c := range table.List("columnDefinitions") {
		names = append(names, c.Str("name"))
	}
	return names
}

// Signers: the three built-in ones that sign, and one of the suite.
const (
	SignerClient  = "platform.io/apiserver-client"
	SignerNode    = "platform.io/apiserver-client-nodeagent"
	SignerServing = "platform.io/nodeagent-serving"
	SignerOther   = "example.com/robots"
	SigningDelay  = 3 * time.Second // time in which a signer must not have signed
)

// Requests for a user and for a node.
var (
	Someone  = Request{CN: "someone", Orgs: []string{"people"}}
	SomeNode = Request{CN: "system:node:n1", Orgs: []string{"system:nodes"}}
)

// Leaf parses the first certificate of an issued chain.
func (t *T) Leaf(chain []byte) *x509.Certificate {
	block, _ := pem.Decode(chain)
	t.True(block != nil && block.Type == "CERTIFICATE" && len(block.Headers) == 0, "a PEM block CERTIFICATE without headers, got %q", chain[:min(len(chain), 60)])
	cert, err := x509.ParseCertificate(block.Bytes)
	t.True(err == nil, "an RFC 5280 certificate, got error %v", err)
	return cert
}

// SelfSigned is any certificate in PEM.
func SelfSigned() []byte { return NewAuthority("anything").PEM }

// WithCertificate returns a copy of a CSR with status.certificate set.
func WithCertificate(csr Obj, chain []byte) Obj {
	return csr.Copy().Set("status.certificate", B64(string(chain)))
}

// TokenReviews is the collection of the virtual type TokenReview.
var TokenReviews = All("authentication.platform.io/v1/tokenreviews")

// Review posts a TokenReview and returns its status.
func (t *T) Review(token string) Obj {
	o := t.POST(TokenReviews, YAML(`{apiVersion: authentication.platform.io/v1, kind: TokenReview, spec: {token: "%s"}}`, token)).OK().Obj()
	t.Eq("kind", o.Str("kind"), "TokenReview")
	t.Eq("apiVersion", o.Str("apiVersion"), "authentication.platform.io/v1")
	return o.Map("status")
}

// SigningSecret is the shared secret of the JWS in cluster-info: the full token
// by the specification; Kubernetes uses the secret part only, against its own
// documentation.
func SigningSecret(token string) string {
	if Vocabulary() == K8s {
		return token[7:]
	}
	return token
}

// Event returns a valid event of events.platform.io/v1. The reporting component
// is given under both of its names, the specification's and Kubernetes' own.
func (t *T) Event() Obj {
	return YAML(`
apiVersion: events.platform.io/v1
kind: Event
metadata: {name: %s}
type: Normal
eventTime: "%s"
action: Testing
reason: Conformance
note: a note
reportingComponent: example.com/suite
reportingController: example.com/suite
reportingInstance: suite-1
regarding: {apiVersion: v1, kind: ConfigMap, name: a, namespace: %s}`,
		t.Name("event"), time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), t.NS())
}

// Checks of default classes affect the whole server, so they run one at a time.
var (
	IngressClasses sync.Mutex
	StorageClasses sync.Mutex
)

// IngressClass makes an IngressClass, marked as default or not.
func (t *T) IngressClass(isDefault string) string {
	name := t.Name("class")
	path := All("networking.platform.io/v1/ingressclasses")
	t.POST(path, YAML(`
apiVersion: networking.platform.io/v1
kind: IngressClass
metadata: {name: %s, annotations: {ingressclass.platform.io/is-default-class: "%s"}}
spec: {controller: example.com/controller}`, name, isDefault)).OK()
	t.Cleanup(func() { t.DELETE(path+"/"+name, nil) })
	return name
}

// Ingress returns an Ingress without a class.
func Ingress(name string) Obj {
	return YAML(`
apiVersion: networking.platform.io/v1
kind: Ingress
metadata: {name: %s}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}`, name)
}

// StorageClass makes a StorageClass, marked as default or not.
func (t *T) StorageClass(isDefault string) string {
	name := t.Name("class")
	path := All("storage.platform.io/v1/storageclasses")
	t.POST(path, YAML(`
apiVersion: storage.platform.io/v1
kind: StorageClass
metadata: {name: %s, annotations: {storageclass.platform.io/is-default-class: "%s"}}
provisioner: example.com/disks`, name, isDefault)).OK()
	t.Cleanup(func() { t.DELETE(path+"/"+name, nil) })
	return name
}

// Claim returns a PersistentVolumeClaim without a class.
func Claim(name string) Obj {
	return YAML(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`, name)
}

// Settle gives the plugins' own view of classes a moment to follow.
func (t *T) Settle() { t.Sleep(700 * time.Millisecond) }

// TolerationSeconds returns the seconds of the NoExecute toleration for a key.
func TolerationSeconds(pod Obj, key string) (seconds []float64) {
	for _, x := range pod.List("spec.tolerations") {
		if x.Str("key") == N(key) && x.Str("effect") == "NoExecute" {
			seconds = append(seconds, x.Num("tolerationSeconds"))
		}
	}
	return seconds
}

// Held returns a ConfigMap with finalizers.
func Held(name string, finalizers ...string) Obj {
	return ConfigMap(name, "k", "v").Set("metadata.finalizers", finalizers)
}

// Past makes Leases a and b, notes the version, and then changes both, adds c
// and deletes b, so that a read of the past differs from one of the present.
func (t *T) Past() (version string) {
	t.Lease("a")
	t.Lease("b")
	version = t.GET(t.In(Leases)).OK().Obj().RV()
	t.PATCH(MergePatch, t.In(Leases)+"/a", `{spec: {holderIdentity: two}}`).OK()
	t.Lease("c")
	t.DELETE(t.In(Leases)+"/b", nil).OK()
	return version
}

// Exactly checks a list of the past made by past.
func (t *T) Exactly(list Obj, version string) {
	t.Eq("list resourceVersion", list.RV(), version)
	t.SameSet("names at the past version", list.Names(), "a", "b")
	t.Eq("holder of a at the past version", list.Item("a").Str("spec.holderIdentity"), "one")
}

// Presently checks a list of the present made by past.
func (t *T) Presently(list Obj) {
	t.SameSet("names at the present", list.Names(), "a", "c")
	t.Eq("holder of a at the present", list.Item("a").Str("spec.holderIdentity"), "two")
}

// Keys returns the keys of an object, sorted.
func Keys(o Obj) (list []string) {
	for k := range o {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// DataOfA is an apply configuration of ConfigMap a with the data given as YAML.
func DataOfA(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: " + data + "\n"
}

// Conflict checks a refused apply: 409, a message and a cause that name the
// other manager and the field.
func (t *T) Conflict(r *Resp, manager, field string) {
	o := r.Status(409, "Conflict")
	t.Contains("message", o.Str("message"), manager)
	t.Contains("message", o.Str("message"), field)
	causes := o.List("details.causes")
	t.True(len(causes) > 0, "details.causes")
	for _, c := range causes {
		t.Eq("reason of a cause", c.Str("reason"), "FieldManagerConflict")
	}
}

// Retype changes the list type of spec.<field> in a custom resource type, and
// waits until an apply shows that the new type is in use.
func (t *T) Retype(c CRD, field, listType string) {
	pointer := "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/" + field + "/" + N("x-platform-list-type")
	t.PATCH(JSONPatch, c.Path, []Obj{{"op": "replace", "path": pointer, "value": listType}}).OK()
	probe := 0
	t.Until(20*time.Second, "list type "+listType+" is in use", func() bool {
		probe++
		p := fmt.Sprintf("%s/probe-%d", t.In(c.Resource()), probe)
		body := c.Object(fmt.Sprintf("probe-%d", probe), "spec: {"+field+": [a]}")
		o := t.Apply("probe", p, body).OK().Obj()
		entry := o.Manager("probe", "Apply").Map("fieldsV1.f:spec.f:" + field)
		return (len(entry) > 0) == (listType == "set")
	})
	t.Sleep(300 * time.Millisecond)
}

// Token is an identity with a bearer token.
func Token(text string) Identity { return Identity{Token: text} }

// Unauthorized fails unless a request with the identity gets 401.
func (t *T) Unauthorized(id Identity, opts ...Opt) {
	t.GET("/api/v1/namespaces", append([]Opt{As(id)}, opts...)...).Status(401, "Unauthorized")
}

// AccessReview sends an access review.
func (t *T) AccessReview(spec string) Obj {
	return t.POST(All("authorization.platform.io/v1/subjectaccessreviews"),
		"apiVersion: authorization.platform.io/v1\nkind: SubjectAccessReview\nspec: "+spec).OK().Obj().Map("status")
}

// WebhookV1 is a validating webhook configuration that matches nothing.
func (t *T) WebhookV1(fields ...string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.platform.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: hook.conformance.example.com
  clientConfig: {url: "https://127.0.0.1:1/x"}
  namespaceSelector: {matchLabels: {no-such: namespace}}
  %s
`, t.Name("hook"), strings.Join(fields, "\n  "))
}

// ClusterInfo is the path of the ConfigMap cluster-info.
var ClusterInfo = In("platform-public", "configmaps") + "/cluster-info"

// PublishClusterInfo makes cluster-info unless it is there already.
func (t *T) PublishClusterInfo() {
	const payload = "apiVersion: v1\nclusters:\n- cluster: {server: https://127.0.0.1}\n  name: \"\"\nkind: Config\n"
	t.POST(In("platform-public", "configmaps"), Obj{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": Obj{"name": "cluster-info"}, "data": Obj{"kubeconfig": payload}}).Is(201, 200, 409)
}

// ClusterInfoSignature waits for the signature of a token in cluster-info.
func (t *T) ClusterInfoSignature(token string) (jws string) {
	t.Until(30*time.Second, "data.jws-kubeconfig-"+token[:6]+" in cluster-info", func() bool {
		jws = t.GET(ClusterInfo).OK().Obj().Str("data.jws-kubeconfig-" + token[:6])
		return jws != ""
	})
	return jws
}

// ListLeases lists the Leases of the check's namespace with a query.
func (t *T) ListLeases(query string) Obj { return t.GET(t.In(Leases) + "?" + query).Is(200).Obj() }

// FirstChunk makes four Leases, reads two of them as a chunk, and then adds one
// and deletes another. It returns the chunk's version and token, and the names
// that the rest must have.
func (t *T) FirstChunk() (version, continuation string, rest []string) {
	all := t.LeasesNamed("l", 4)
	first := t.ListLeases("limit=2")
	rest = Without(all, first.Names())
	t.Lease("l-99")
	t.DELETE(t.In(Leases)+"/"+rest[0], nil).OK()
	return first.RV(), Esc(first.Str("metadata.continue")), rest
}

// Without returns the names of all that are not among some.
func Without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(some, n) })
}
