package extensions

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/keypair"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

var theEngine = sync.OnceValues(func() (*typesystem.Engine, error) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		return nil, err
	}
	return typesystem.New(types, typesystem.Options{Vocabulary: vocabulary.K8s()})
})

// bench is a store, an extension in namespace ns that wants the certificate of a front
// door, and the handlers of the front door.
type bench struct {
	*testing.T
	handlers  *Handlers
	store     services.Store
	front     *httptest.Server
	extension *httptest.Server
	port      string
	authority []byte // of the extension
	user      services.UserInfo
	// limits is what the pipeline does with the deadline of a request.
	timeout time.Duration
}

func newBench(t *testing.T, serve http.HandlerFunc) *bench {
	t.Helper()
	engine, err := theEngine()
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.New(t)
	b := &bench{T: t, store: cluster.Store(), timeout: 10 * time.Second,
		user: services.UserInfo{Name: "jane", UID: "u1", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.com/x": {"1", "2"}}}}
	serving, client := issue(t, "ext.ns.svc"), issue(t, "front-proxy-client")
	pair, err := tls.LoadX509KeyPair(serving.Cert, serving.Key)
	if err != nil {
		t.Fatal(err)
	}
	if b.authority, err = os.ReadFile(serving.CA); err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	trusted, err := os.ReadFile(client.CA)
	if err != nil || !clients.AppendCertsFromPEM(trusted) {
		t.Fatal(err)
	}
	b.extension = httptest.NewUnstartedServer(serve)
	b.extension.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	b.extension.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	b.extension.StartTLS()
	t.Cleanup(b.extension.Close)
	u, _ := url.Parse(b.extension.URL)
	b.port = u.Port()
	quiet := slog.New(slog.DiscardHandler)
	policy := outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	transports, err := outbound.New(outbound.Config{Policy: policy, Timeout: 5 * time.Second, Idle: time.Minute, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := keypair.Open(keypair.Files{Cert: client.Cert, Key: client.Key}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	b.handlers = New(Config{Vocabulary: vocabulary.K8s(), Store: b.store, Services: locate.Locator{Store: b.store, Vocabulary: vocabulary.K8s()}, Source: cluster.Source(), Identity: identity, Seats: 4, Log: quiet,
		Writes: &writes.Handlers{Store: b.store}, Engine: func() *typesystem.Engine { return engine }, Hidden: []string{"X-First-User", "X-Ex-"},
		Connections: &connect.Handlers{Store: b.store, Policy: policy, Transports: transports, Lifetime: time.Minute}})
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { _ = b.handlers.Follow(ctx) })
	t.Cleanup(func() { stop(); following.Wait() })
	b.front = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.front.Close)
	b.keep(resource.GroupResource{Resource: "services"}, "ns", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"ext","namespace":"ns","uid":"s"},
		"spec":{"type":"ClusterIP","clusterIP":"127.0.0.1","ports":[{"name":"https","port":`+b.port+`}]}}`)
	b.keep(resource.GroupResource{Resource: "endpoints"}, "ns", `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"ext","namespace":"ns","uid":"e"},
		"subsets":[{"addresses":[{"ip":"127.0.0.1"}],"ports":[{"name":"https","port":`+b.port+`}]}]}`)
	return b
}

// issue makes an authority and a certificate of it.
func issue(t *testing.T, name string) peertls.Files {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// serve handles a request as the pipeline does.
func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	asked := &request.Request{Audit: &audit.Record{}, Request: r, User: b.user}
	isResource, err := asked.Identify(b.handlers.Engine())
	if err != nil {
		b.fail(w, err)
		return
	}
	if !isResource {
		asked.Verb, asked.Plain = strings.ToLower(r.Method), request.NoPage
	}
	b.handlers.Route(asked)
	handle := asked.Plain
	if handle == nil {
		handle = func(w http.ResponseWriter, _ *request.Request) error {
			_, err := io.WriteString(w, "built in")
			return err
		}
	}
	if !asked.LongRunning() {
		ctx, cancel := context.WithTimeout(r.Context(), b.timeout)
		defer cancel()
		asked.Request = r.WithContext(ctx)
	}
	b.fail(w, handle(w, asked))
}

func (b *bench) fail(w http.ResponseWriter, err error) {
	if err != nil {
		status := services.AsStatus(err)
		w.WriteHeader(int(status.Code))
		_, _ = io.WriteString(w, status.Message)
	}
}

func (b *bench) keep(gr resource.GroupResource, namespace, object string) {
	b.Helper()
	decoded, err := tree.Decode([]byte(object))
	if err != nil {
		b.Fatal(err)
	}
	content, err := b.handlers.Engine().Content(context.Background(), decoded, nil, b.handlers.Engine().Types.Stored(gr))
	if err != nil {
		b.Fatal(err)
	}
	key := resource.Key{GroupResource: gr, Namespace: namespace, Name: tree.Text(decoded, "metadata", "name")}
	if _, err := b.store.Delete(b.Context(), services.DeleteRequest{Key: key}); err != nil && !services.IsReason(err, services.ReasonNotFound) {
		b.Fatal(err)
	}
	if _, err := b.store.Create(b.Context(), services.CreateRequest{Key: key, Content: content}); err != nil {
		b.Fatal(err)
	}
}

// registered are the owners of a registration.
var registered = []any{map[string]any{"manager": "test", "operation": "Update", "apiVersion": "apiregistration.k8s.io/v1",
	"time": "2021-04-08T01:02:03Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:group": map[string]any{}}}}}

// register stores an APIService of the service ext, and waits until it is known. change
// may be nil.
func (b *bench) register(version, group string, change func(spec map[string]any)) {
	b.Helper()
	spec := map[string]any{"group": group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
		"caBundle": base64.StdEncoding.EncodeToString(b.authority), "service": map[string]any{"namespace": "ns", "name": "ext", "port": b.number()}}
	if change != nil {
		change(spec)
	}
	name := version + "." + group
	raw, err := tree.Encode(map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name, "uid": "uid-" + name, "managedFields": registered}, "spec": spec})
	if err != nil {
		b.Fatal(err)
	}
	b.keep(b.handlers.resource(), "", string(raw))
	b.until("the registration is known", func() bool {
		x := (*b.handlers.table.Load())[[2]string{group, version}]
		return x != nil && x.condition.status == ""
	})
}

func (b *bench) number() (n int64) {
	_, _ = fmt.Sscan(b.port, &n)
	return n
}

// check checks and reports the condition of an extension, and waits until it is known.
func (b *bench) check(version, group string) condition {
	b.Helper()
	x := (*b.handlers.table.Load())[[2]string{group, version}]
	c := b.handlers.check(b.Context(), x)
	if err := b.handlers.report(b.Context(), x, c); err != nil {
		b.Fatal(err)
	}
	b.until("the condition is known", func() bool {
		return (*b.handlers.table.Load())[[2]string{group, version}].condition.status == c.status
	})
	return c
}

// available makes an extension available without a check.
func (b *bench) available(version, group string) {
	b.Helper()
	if err := b.handlers.report(b.Context(), (*b.handlers.table.Load())[[2]string{group, version}], passed); err != nil {
		b.Fatal(err)
	}
	b.until("it is available", func() bool {
		return (*b.handlers.table.Load())[[2]string{group, version}].condition == passed
	})
}

func (b *bench) until(what string, done func() bool) {
	b.Helper()
	deadline := time.After(10 * time.Second)
	for !done() {
		select {
		case <-deadline:
			b.Fatalf("not in time: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ask sends a request to the front door without following redirects.
func (b *bench) ask(method, path string, header http.Header, body string) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.front.URL, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.URL.Opaque = "//front" + path
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		text = append(text, err.Error()...)
	}
	return response, string(text)
}

func (b *bench) remove(key resource.Key) {
	b.Helper()
	if _, err := b.store.Delete(b.Context(), services.DeleteRequest{Key: key}); err != nil {
		b.Fatal(err)
	}
}
