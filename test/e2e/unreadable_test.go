package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestUnreadableInOneProcess damages objects of all types by which the suite decides, in etcd.
func TestUnreadableInOneProcess(t *testing.T) {
	t.Parallel()
	s := newSuite(t, vocabulary.K8s())
	files := s.issue(t, "all-in-one", "store")
	args := []string{"--etcd-servers=https://" + s.addresses["etcd"], "--etcd-cafile=" + files.CA, "--etcd-certfile=" + files.Cert, "--etcd-keyfile=" + files.Key}
	a := startAllInOne(t, s.vocabulary, args...)
	damaged(t, a.Cluster, s.dialEtcd(t, files), func() *cluster.Cluster {
		a.process.kill()
		a.start(t, args...)
		return a.Cluster
	})
}

// TestUnreadableInProcesses does the same with separate processes.
func TestUnreadableInProcesses(t *testing.T) {
	t.Parallel()
	s, c := startSuite(t, vocabulary.K8s())
	damaged(t, c, s.dialEtcd(t, s.issue(t, "damaging", "store")), func() *cluster.Cluster {
		for _, p := range programs() {
			s.processes[p.name].kill()
		}
		for _, p := range programs() {
			s.start(t, p)
		}
		return s.connect(t, "frontdoor")
	})
}

func (s *suite) dialEtcd(t *testing.T, files peertls.Files) *clientv3.Client {
	t.Helper()
	security, err := (transport.TLSInfo{TrustedCAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + s.addresses["etcd"]}, TLS: security, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// victim is an object that is damaged.
type victim struct {
	path, object string
	key          resource.Key
	damage       func(value []byte) []byte
}

func garbage([]byte) []byte         { return []byte("garbage") }
func truncated(value []byte) []byte { return value[:len(value)-5] }
func encrypted([]byte) []byte       { return []byte("portico:enc:aesgcm:v1:gone:bytes") }
func later(value []byte) []byte {
	at := strings.Index(string(value), `"apiVersion":"`)
	end := at + len(`"apiVersion":"`) + strings.Index(string(value[at+len(`"apiVersion":"`):]), `"`)
	return []byte(string(value[:end]) + "beta77" + string(value[end:]))
}
func foreign(value []byte) []byte {
	return []byte(strings.Replace(string(value), `"kind":"`, `"kind":"Other`, 1))
}

const (
	inside = "/api/v1/namespaces/unread"
)

// victims returns one object of each type, in the order in which they decide about robot's request.
func victims() map[string]victim {
	one := func(group, plural, namespace, object string, damage func([]byte) []byte) victim {
		path := "/apis/" + group + "/v1/"
		if group == "" {
			path = "/api/v1/"
		}
		if namespace != "" {
			path += "namespaces/" + namespace + "/"
		}
		return victim{path + plural, object, resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: plural}, Namespace: namespace, Name: "victim"}, damage}
	}
	rules := `"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["podtemplates"]`
	return map[string]victim{
		"revocation": one("access.portico.dev", "revocations", "", `{"apiVersion":"access.portico.dev/v1","kind":"Revocation","metadata":{"name":"victim"},"spec":{"user":"system:serviceaccount:unread:revoked","reason":"test"}}`, garbage),
		"webhook": one("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"victim"},`+
			`"webhooks":[{"name":"a.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Fail","rules":[{`+rules+`}],"clientConfig":{"url":"https://127.0.0.1:1/"}}]}`, truncated),
		"policy": one("admissionregistration.k8s.io", "validatingadmissionpolicies", "", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"victim"},`+
			`"spec":{"matchConstraints":{"resourceRules":[{`+rules+`}]},"validations":[{"expression":"false"}]}}`, later),
		"quota":      one("", "resourcequotas", "unread", `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"victim"},"spec":{"hard":{"count/podtemplates":"0"}}}`, encrypted),
		"binding":    one("rbac.authorization.k8s.io", "clusterrolebindings", "", clusterRoleBinding("bound"), foreign),
		"owner":      one("", "configmaps", "unread", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"victim"}}`, garbage),
		"account":    one("", "serviceaccounts", "unread", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"victim"}}`, truncated),
		"namespace":  one("", "namespaces", "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"victim"}}`, garbage),
		"apiservice": one("apiregistration.k8s.io", "apiservices", "", `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.away.example"},"spec":{"group":"away.example","version":"v1","groupPriorityMinimum":100,"versionPriority":10,"service":{"namespace":"unread","name":"none"}}}`, garbage),
		"definition": one("apiextensions.k8s.io", "customresourcedefinitions", "", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.unread.example"},`+
			`"spec":{"group":"unread.example","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, encrypted),
	}
}

func clusterRoleBinding(account string) string {
	return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"victim"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},` +
		`"subjects":[{"kind":"ServiceAccount","namespace":"unread","name":"` + account + `"}]}`
}

// named sets the name of those whose name says what they are.
func (v *victim) named() {
	var object struct{ Metadata struct{ Name string } }
	if json.Unmarshal([]byte(v.object), &object) == nil {
		v.key.Name = object.Metadata.Name
	}
}

// stage is a cluster with accounts.
type damage struct {
	t      *testing.T
	c      *cluster.Cluster
	tokens map[string]string
	all    map[string]victim
}

// as sends a request with the token of an account.
func (d *damage) as(account, method, path, body string) cluster.Answer {
	d.t.Helper()
	other := *d.c
	other.Token = d.tokens[account]
	return other.Ask(d.t, cluster.Request{Method: method, Path: path, Body: body})
}

const template = `{"apiVersion":"v1","kind":"PodTemplate","metadata":{"generateName":"a-"},"template":{"spec":{"containers":[{"name":"a","image":"a"}]}}}`

func (d *damage) create(account string) cluster.Answer {
	d.t.Helper()
	return d.as(account, http.MethodPost, inside+"/podtemplates?dryRun=All", template)
}

// prepare makes the objects and waits until they have an effect.
func (d *damage) prepare() {
	t, c := d.t, d.c
	ok(t, c, post("/api/v1/namespaces", `{"metadata":{"name":"unread"}}`))
	for _, account := range []string{"robot", "revoked", "bound", "victim"} {
		if account != "victim" {
			ok(t, c, post(inside+"/serviceaccounts", `{"metadata":{"name":"`+account+`"}}`))
		}
	}
	ok(t, c, post("/apis/rbac.authorization.k8s.io/v1/namespaces/unread/rolebindings", `{"metadata":{"name":"robot"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},`+
		`"subjects":[{"kind":"ServiceAccount","namespace":"unread","name":"robot"},{"kind":"ServiceAccount","namespace":"unread","name":"revoked"}]}`))
	for name, v := range d.all {
		v.named()
		d.all[name] = v
		ok(t, c, post(v.path, v.object))
	}
	ok(t, c, post("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"victim"},"spec":{"policyName":"victim","validationActions":["Deny"]}}`))
	for _, account := range []string{"robot", "revoked", "bound", "victim"} {
		var token struct{ Status struct{ Token string } }
		ok(t, c, post(inside+"/serviceaccounts/"+account+"/token", `{}`)).Decode(t, &token)
		d.tokens[account] = token.Status.Token
	}
	var owner struct{ Metadata struct{ UID string } }
	ok(t, c, cluster.Request{Path: inside + "/configmaps/victim"}).Decode(t, &owner)
	ok(t, c, post(inside+"/configmaps", `{"metadata":{"name":"dependent","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"victim","uid":"`+owner.Metadata.UID+`"}]}}`))
	eventually(t, "things are served", func() bool {
		return c.Ask(t, post("/apis/unread.example/v1/namespaces/unread/things", `{"apiVersion":"unread.example/v1","kind":"Thing","metadata":{"name":"thing"}}`)).Code < 300
	})
	eventually(t, "all objects have an effect", func() bool {
		return d.as("revoked", http.MethodGet, inside+"/configmaps", "").Code == http.StatusUnauthorized && d.create("robot").Code >= 400 &&
			d.as("bound", http.MethodGet, "/api/v1/configmaps", "").Code == http.StatusOK
	})
}

// damaged is the body of the tests. restart restarts the suite.
func damaged(t *testing.T, c *cluster.Cluster, etcd *clientv3.Client, restart func() *cluster.Cluster) {
	d := &damage{t: t, c: c, tokens: map[string]string{}, all: victims()}
	d.prepare()
	for _, v := range d.all {
		stored, err := etcd.Get(t.Context(), v.key.Path())
		if err != nil || len(stored.Kvs) != 1 {
			t.Fatalf("%s: %v, %v", v.key, stored, err)
		}
		if _, err := etcd.Put(t.Context(), v.key.Path(), string(v.damage(stored.Kvs[0].Value))); err != nil {
			t.Fatal(err)
		}
	}
	d.unreadable("running")
	if a := d.as("robot", http.MethodGet, inside+"/secrets", ""); a.Code != http.StatusOK {
		t.Errorf("a user whom nothing damaged is about gets %d %s", a.Code, a.Body)
	}
	began := time.Now()
	for range 20 {
		d.as("robot", http.MethodGet, inside+"/secrets", "")
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("20 requests of others take %v", took)
	}
	d.c = restart()
	d.unreadable("started")
	d.repair()
}

// unreadable checks what holds while the objects cannot be read.
func (d *damage) unreadable(when string) {
	t := d.t
	for name, v := range d.all {
		eventually(t, when+": "+name+" is an error", func() bool {
			return d.c.Ask(t, cluster.Request{Path: v.path + "/" + v.key.Name}).Code == http.StatusInternalServerError
		})
		if a := d.c.Ask(t, cluster.Request{Path: v.path}); a.Code != http.StatusInternalServerError || !strings.Contains(a.Body, v.key.Name) {
			t.Errorf("%s: list with %s: %d %.300s", when, name, a.Code, a.Body)
		}
	}
	for what, a := range map[string]cluster.Answer{
		"revoked user": d.as("revoked", http.MethodGet, inside+"/secrets", ""), "bound user": d.as("bound", http.MethodGet, "/api/v1/configmaps", ""),
		"damaged account": d.as("victim", http.MethodGet, inside+"/secrets", ""), "create": d.create("robot"),
		"extension": d.c.Ask(t, cluster.Request{Path: "/apis/away.example/v1/things"}),
	} {
		if a.Code < 400 || a.Code == http.StatusNotFound {
			t.Errorf("%s: %s: %d %.300s", when, what, a.Code, a.Body)
		}
	}
	eventually(t, when+": nothing is created in the namespace", func() bool {
		a := d.c.Ask(t, post("/api/v1/namespaces/victim/configmaps?dryRun=All", `{"metadata":{"name":"a"}}`))
		return a.Code >= 400 && a.Code != http.StatusNotFound
	})
	if a := d.c.Ask(t, cluster.Request{Path: "/apis/unread.example/v1/namespaces/unread/things/thing"}); a.Code == http.StatusNotFound {
		t.Errorf("%s: a custom object: %d %s", when, a.Code, a.Body)
	}
	if a := d.c.Ask(t, cluster.Request{Path: inside + "/configmaps/dependent"}); a.Code != http.StatusOK {
		t.Errorf("%s: the dependent of an object that cannot be read: %d", when, a.Code)
	}
	a := d.c.Ask(t, cluster.Request{Path: "/readyz?verbose"})
	if a.Code != http.StatusOK || !strings.Contains(a.Body, "[-]stored-objects failed: 10 stored objects") || !strings.Contains(a.Body, d.all["owner"].key.String()) {
		t.Errorf("%s: readyz: %d %s", when, a.Code, a.Body)
	}
}

// repair repairs one object after the other as the administrator, and checks that what comes next refuses until all is well.
func (d *damage) repair() {
	t := d.t
	refused := func(by string, a cluster.Answer) {
		t.Helper()
		if key := d.all[by].key; a.Code < 400 || !strings.Contains(a.Body, key.Name) || !strings.Contains(a.Body, key.Resource) {
			t.Errorf("refused by %s: %d %.400s", by, a.Code, a.Body)
		}
	}
	again := func(name, method string) {
		t.Helper()
		v := d.all[name]
		if method == http.MethodDelete {
			ok(t, d.c, cluster.Request{Method: method, Path: v.path + "/" + v.key.Name})
			return
		}
		ok(t, d.c, cluster.Request{Method: http.MethodPut, Path: v.path + "/" + v.key.Name, Body: v.object})
	}
	refused("revocation", d.create("robot"))
	refused("revocation", d.as("revoked", http.MethodGet, inside+"/secrets", ""))
	byAdministrator := func() cluster.Answer { return d.c.Ask(t, post(inside+"/podtemplates?dryRun=All", template)) }
	refused("policy", byAdministrator())
	again("policy", http.MethodDelete)
	eventually(t, "the webhook refuses", func() bool {
		a := byAdministrator()
		return a.Code >= 400 && strings.Contains(a.Body, "validatingwebhookconfigurations")
	})
	again("webhook", http.MethodPut)
	eventually(t, "the repaired webhook refuses", func() bool { return strings.Contains(byAdministrator().Body, "failed calling webhook") })
	ok(t, d.c, cluster.Request{Method: http.MethodDelete, Path: d.all["webhook"].path + "/victim"})
	again("revocation", http.MethodPut)
	eventually(t, "others are authenticated", func() bool { return d.as("robot", http.MethodGet, inside+"/secrets", "").Code == http.StatusOK })
	eventually(t, "the repaired revocation revokes", func() bool {
		return d.as("revoked", http.MethodGet, inside+"/secrets", "").Code == http.StatusUnauthorized
	})
	refused("binding", d.as("bound", http.MethodGet, "/api/v1/configmaps", ""))
	eventually(t, "the quota refuses", func() bool {
		a := d.create("robot")
		return a.Code >= 400 && strings.Contains(a.Body, "resourcequotas")
	})
	for name, method := range map[string]string{"quota": http.MethodDelete, "binding": http.MethodPut, "owner": http.MethodPut, "account": http.MethodPut,
		"namespace": http.MethodPut, "apiservice": http.MethodDelete} {
		again(name, method)
	}
	ok(t, d.c, post("/api/v1/namespaces", `{"metadata":{"name":"ending"}}`))
	ok(t, d.c, cluster.Request{Method: http.MethodDelete, Path: "/api/v1/namespaces/ending"})
	eventually(t, "the namespace is not emptied of types that are not known", func() bool {
		return strings.Contains(d.c.Ask(t, cluster.Request{Path: "/api/v1/namespaces/ending"}).Body, "not all types are known")
	})
	again("definition", http.MethodPut)
	eventually(t, "the namespace ends", func() bool {
		return d.c.Ask(t, cluster.Request{Path: "/api/v1/namespaces/ending"}).Code == http.StatusNotFound
	})
	eventually(t, "all is well again", func() bool {
		return d.create("robot").Code < 300 && d.as("bound", http.MethodGet, "/api/v1/configmaps", "").Code == http.StatusOK &&
			d.c.Ask(t, cluster.Request{Path: "/apis/unread.example/v1/namespaces/unread/things/thing"}).Code == http.StatusOK &&
			strings.Contains(d.c.Ask(t, cluster.Request{Path: "/readyz?verbose"}).Body, "[+]stored-objects ok")
	})
}
