package connect

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"encoding/pem"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// admission lets everything through after change has had its say.
type admission struct{ change func([]byte) []byte }

func (a admission) Mutate(_ context.Context, q services.AdmissionRequest) (services.AdmissionResponse, error) {
	if a.change == nil {
		return services.AdmissionResponse{}, nil
	}
	return services.AdmissionResponse{Object: a.change(q.Object)}, nil
}

func (a admission) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, nil
}

// bench is a store, a node, and a server that hands connections on to the node.
type bench struct {
	*testing.T
	engine   *typesystem.Engine
	store    services.Store
	handlers *Handlers
	front    *httptest.Server
	node     *httptest.Server
	own      http.Header // what the front door sets on each response
	// stages are those of the audit log.
	mu     sync.Mutex
	stages []int
}

// newBench starts a node that answers with a handler.
func newBench(t *testing.T, node http.HandlerFunc) *bench {
	t.Helper()
	engine := handlertest.Engine(t)
	b := &bench{T: t, engine: engine, store: fake.New(t).Store()}
	b.node = httptest.NewUnstartedServer(node)
	b.node.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	b.node.StartTLS()
	t.Cleanup(b.node.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.node.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	transports, err := outbound.New(outbound.Config{Policy: policy, Authority: authority, Timeout: 5 * time.Second, Idle: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b.handlers = &Handlers{Store: b.store, Admission: admission{}, Policy: policy, Transports: transports, AddressTypes: []string{"InternalIP"}, Lifetime: time.Minute}
	b.front = httptest.NewServer(http.HandlerFunc(b.serve))
	b.front.Config.ErrorLog = b.node.Config.ErrorLog
	t.Cleanup(b.front.Close)
	b.placeNode("n", b.node.URL)
	b.pod("placed", `,"spec":{"nodeName":"n","containers":[{"name":"a"}]}`)
	return b
}

// serve handles a request as the pipeline does.
func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	asked := &request.Request{Audit: &audit.Record{}, Request: r, Started: func(status int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stages = append(b.stages, status)
	}}
	if _, err := asked.Identify(b.engine); err != nil {
		b.Error(err)
		return
	}
	handle := asked.Plain
	if handle == nil {
		handle = b.handlers.Of(asked)
	}
	maps.Copy(w.Header(), b.own)
	if err := handle(w, asked); err != nil {
		status := services.AsStatus(err)
		if errorsInTheMiddle(err) {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(int(status.Code))
		_, _ = io.WriteString(w, status.Message)
	}
}

func errorsInTheMiddle(err error) bool { return err == errDropped } //nolint:errorlint // never wrapped

func (b *bench) keep(gr resource.GroupResource, namespace, object string) {
	b.Helper()
	decoded, err := tree.Decode([]byte(object))
	if err != nil {
		b.Fatal(err)
	}
	content, err := b.engine.Content(context.Background(), decoded, nil, b.engine.Types.Stored(gr))
	if err != nil {
		b.Fatal(err)
	}
	key := resource.Key{GroupResource: gr, Namespace: namespace, Name: tree.Text(decoded, "metadata", "name")}
	if _, err := b.store.Create(b.Context(), services.CreateRequest{Key: key, Content: content}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) pod(name, rest string) {
	b.Helper()
	b.keep(resource.GroupResource{Resource: "pods"}, "default", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+name+`","namespace":"default","uid":"u-`+name+`"}`+rest+`}`)
}

// placeNode stores a node that serves at a URL.
func (b *bench) placeNode(name, at string) {
	b.Helper()
	u, err := url.Parse(at)
	if err != nil {
		b.Fatal(err)
	}
	b.keep(resource.GroupResource{Resource: "nodes"}, "", fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"uid":"u-%s"},
		"status":{"addresses":[{"type":"Hostname","address":"elsewhere"},{"type":"InternalIP","address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}`,
		name, name, u.Hostname(), u.Port()))
}

// ask sends a request for a path below the pods of the namespace and returns the
// response.
func (b *bench) ask(method, path string, header http.Header) (int, string) {
	b.Helper()
	code, body, err := b.do(method, "/api/v1/namespaces/default/"+path, header)
	if err != nil {
		b.Fatal(err)
	}
	return code, body
}

func (b *bench) do(method, path string, header http.Header) (int, string, error) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.front.URL+path, strings.NewReader(""))
	if err != nil {
		b.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// closedPort returns an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "https://" + listener.Addr().String()
}
