package admission_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

var admissionServices = resource.GroupResource{Group: "extension.portico.dev", Resource: "admissionservices"}

// delegate is an admission service over gRPC and TLS. It answers as its functions do, and
// allows what they leave open.
type delegate struct {
	name     string // in its certificate; "delegate" if empty
	address  string
	ca       []byte
	clients  *x509.CertPool // of the certificates that callers need; nil if they need none
	server   *grpc.Server
	health   *health.Server
	mutate   func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error)
	validate func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error)

	mu    sync.Mutex
	asked []services.AdmissionRequest
}

func (d *delegate) note(r services.AdmissionRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r)
}

// requests returns what was asked since the last call of this function.
func (d *delegate) requests() []services.AdmissionRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.asked
	d.asked = nil
	return asked
}

func (d *delegate) Mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	d.note(r)
	if d.mutate == nil {
		return services.AdmissionResponse{}, nil
	}
	return d.mutate(ctx, r)
}

func (d *delegate) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	d.note(r)
	if d.validate == nil {
		return services.AdmissionResponse{}, nil
	}
	return d.validate(ctx, r)
}

// delegated starts an admission service, until the end of the test. more may register other
// services with its server.
func delegated(t *testing.T, d *delegate, more ...func(*delegate)) *delegate {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), cmp.Or(d.name, "delegate"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	if d.ca, err = os.ReadFile(files.CA); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.address = listener.Addr().String()
	secured := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if d.clients != nil {
		secured.ClientAuth, secured.ClientCAs = tls.RequireAndVerifyClientCert, d.clients
	}
	d.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(secured)))
	rpc.RegisterAdmission(d.server, d)
	for _, register := range more {
		register(d)
	}
	d.health = health.NewServer()
	healthpb.RegisterHealthServer(d.server, d.health)
	go func() { _ = d.server.Serve(listener) }()
	t.Cleanup(d.server.Stop)
	return d
}

// declare stores an AdmissionService for ConfigMaps at this service, with fields that
// replace the usual ones.
func (d *delegate) declare(t *testing.T, c *fake.Cluster, name string, fields ...string) {
	t.Helper()
	declare(t, c, name, append([]string{
		fmt.Sprintf(`"endpoint":{"addresses":[%q]}`, d.address),
		fmt.Sprintf(`"trust":{"serverName":"delegate","caBundle":%q}`, base64.StdEncoding.EncodeToString(d.ca)),
	}, fields...)...)
}

func declare(t testing.TB, c *fake.Cluster, name string, fields ...string) {
	t.Helper()
	c.Put(t, admissionServices, declaration(t, name, fields...))
}

// declaration returns an AdmissionService as JSON.
func declaration(t testing.TB, name string, fields ...string) string {
	t.Helper()
	spec := map[string]any{}
	for _, f := range append([]string{`"sideEffects":"None"`, `"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["configmaps"]}]`}, fields...) {
		if err := json.Unmarshal([]byte("{"+f+"}"), &spec); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "extension.portico.dev/v1", "kind": "AdmissionService",
		"metadata": map[string]any{"name": name, "uid": "uid-of-" + name, "generation": 1}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func named(name string) services.AdmissionRequest {
	r := create("here")
	r.Name, r.Object = name, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"here","uid":"u"}}`, name)
	return r
}

// patience bounds every wait for something that has to happen.
const patience = time.Minute

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late, again := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-late:
			t.Fatal("not in time: " + what)
		}
	}
}

// changing returns an answer whose object has one more annotation.
func changing(key, value string) func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return func(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
		var o map[string]any
		if err := json.Unmarshal(r.Object, &o); err != nil {
			return services.AdmissionResponse{}, err
		}
		metadata := o["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
		}
		before, _ := annotations[key].(string)
		annotations[key] = before + value
		metadata["annotations"] = annotations
		raw, err := json.Marshal(o)
		return services.AdmissionResponse{Object: raw, Warnings: []string{"changed by " + key}, AuditAnnotations: map[string]string{"why": value, "not valid/ /": "x"}}, err
	}
}

func refusing(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{Warnings: []string{"beware"}}, services.Forbidden("", "configmaps", r.Name, "it is Monday")
}

// TestAdmissionServices: services of objects are asked in their order, before webhooks; the
// answer of each counts, and is recorded.
func TestAdmissionServices(t *testing.T) {
	c, s := cluster(t), serve(t)
	configure(t, c, "mutating", "hooks", s.hook("hook"))
	first, second := delegated(t, &delegate{mutate: changing("a", "1")}), delegated(t, &delegate{mutate: changing("b", "2")})
	second.declare(t, c, "second", `"order":2`, `"phase":"Mutate"`)
	first.declare(t, c, "the-first", `"order":1`)
	a := started(t, c)
	got, err := a.Mutate(t.Context(), named("c"))
	if err != nil || !strings.Contains(string(got.Object), `"annotations":{"a":"11","b":"22"}`) {
		t.Errorf("%s, %v", got.Object, err)
	}
	if strings.Join(got.Warnings, ",") != "changed by a,changed by b,changed by a,changed by b" { // in two rounds
		t.Errorf("warnings %q", got.Warnings)
	}
	s.mu.Lock()
	if seen := fmt.Sprint(s.reviews["hook"]); !strings.Contains(seen, "annotations") {
		t.Errorf("the webhook has seen %s", seen)
	}
	s.mu.Unlock()
	for key, part := range map[string]string{
		"mutate.extension.portico.dev/the-first": `"verdict":"allowed","mutated":true`, "mutate.extension.portico.dev/second": `"enforced":true`, "the-first/why": "1"} {
		if !strings.Contains(got.AuditAnnotations[key], part) {
			t.Errorf("annotations %v lack %s", got.AuditAnnotations, part)
		}
	}
	if len(got.AuditAnnotations) != 7 || len(got.Timings) != 4 || got.Timings[0].Name != "the-first" || got.Timings[0].Took <= 0 {
		t.Errorf("annotations %v, timings %v", got.AuditAnnotations, got.Timings)
	}
	first.validate = refusing
	first.requests()
	answer, err := a.Validate(t.Context(), named("c"))
	status := services.AsStatus(err)
	if status == nil || status.Code != 403 || status.Reason != services.ReasonForbidden ||
		status.Message != `admission service "the-first" denied the request: configmaps "c" is forbidden: it is Monday` || strings.Join(answer.Warnings, ",") != "beware" {
		t.Errorf("%+v, %+v", answer, status)
	}
	if asked := first.requests(); len(asked) != 1 || asked[0].Name != "c" || asked[0].User.Name != "" || asked[0].UID != "" {
		t.Errorf("asked %+v", asked)
	}
}

// TestAdmissionServiceConfigurationsAreNotReviewed: nobody is asked about the objects that
// say who is asked, so that one can always be deleted.
func TestAdmissionServiceConfigurationsAreNotReviewed(t *testing.T) {
	c, s := cluster(t), serve(t)
	everything := `"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]`
	d := delegated(t, &delegate{mutate: refusing, validate: refusing})
	d.declare(t, c, "all", everything)
	configure(t, c, "validating", "all", s.hook("all", `rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]`))
	a := started(t, c)
	for group, resources := range map[string][]string{"extension.portico.dev": {"admissionservices"},
		"admissionregistration.platform.io": {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}} {
		for _, plural := range resources {
			r := createOf(group, plural, `{}`)
			r.Namespace = ""
			for _, r.Operation = range []services.Operation{services.OperationCreate, services.OperationUpdate, services.OperationDelete} {
				for _, ask := range []func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error){a.Mutate, a.Validate} {
					if _, err := ask(t.Context(), r); err != nil {
						t.Errorf("%s %s: %v", r.Operation, plural, err)
					}
				}
			}
		}
	}
	if _, err := a.Mutate(t.Context(), named("c")); services.AsStatus(err) == nil || len(d.requests()) != 1 || len(s.calls()) != 0 {
		t.Errorf("a ConfigMap: %v", err)
	}
}

// TestShadows: the answers of a shadow are recorded, and nothing else.
func TestShadows(t *testing.T) {
	c := cluster(t)
	d := delegated(t, &delegate{mutate: changing("a", "1"), validate: refusing})
	d.declare(t, c, "shadow", `"mode":"Shadow"`)
	a := started(t, c)
	got, err := a.Mutate(t.Context(), named("c"))
	if err != nil || got.Object != nil || len(got.Warnings) > 0 || !strings.Contains(got.AuditAnnotations["mutate.extension.portico.dev/shadow"], `"mode":"Shadow","enforced":false,"verdict":"allowed","mutated":true`) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = a.Validate(t.Context(), named("c"))
	if err != nil || len(got.Warnings) > 0 || !strings.Contains(got.AuditAnnotations["validate.extension.portico.dev/shadow"], `"verdict":"denied"`) {
		t.Errorf("%+v, %v", got, err)
	}
	if len(d.requests()) != 2 {
		t.Error("the shadow was not asked")
	}
}

// TestCanary: of 5,000 objects a tenth is enforced, and always the same ones.
func TestCanary(t *testing.T) {
	c := cluster(t)
	delegated(t, &delegate{validate: refusing}).declare(t, c, "canary", `"mode":"Canary"`, `"canaryPercent":10`, `"phase":"Validate"`)
	const objects = 5000
	var rounds [2][]bool
	for i := range rounds {
		a := started(t, c) // another process
		refused := make([]bool, objects)
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for n := worker; n < objects; n += 8 {
					_, err := a.Validate(t.Context(), named(fmt.Sprintf("object-%d", n)))
					refused[n] = services.IsReason(err, services.ReasonForbidden)
					if err != nil && !refused[n] {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		rounds[i] = refused
	}
	count := 0
	for n, refused := range rounds[0] {
		if refused {
			count++
		}
		if refused != rounds[1][n] {
			t.Errorf("object %d is enforced once and not again", n)
		}
	}
	if share := float64(count) / objects; share < 0.08 || share > 0.12 {
		t.Errorf("%.1f %% of objects are enforced", 100*share)
	}
	t.Logf("%d of %d objects are enforced", count, objects)
}

// TestDryRunOfServices: a service with side effects is not asked in a dry run.
func TestDryRunOfServices(t *testing.T) {
	for _, x := range []struct {
		effects, mode string
		refused       bool
		asked         int
	}{{"None", "Enforce", false, 1}, {"NoneOnDryRun", "Enforce", false, 1}, {"Some", "Enforce", true, 0}, {"Some", "Shadow", false, 0}} {
		c := cluster(t)
		d := delegated(t, &delegate{})
		d.declare(t, c, "one", fmt.Sprintf(`"sideEffects":%q`, x.effects), fmt.Sprintf(`"mode":%q`, x.mode))
		a := started(t, c)
		r := named("c")
		r.DryRun = true
		_, err := a.Validate(t.Context(), r)
		if services.IsReason(err, services.ReasonBadRequest) != x.refused || len(d.requests()) != x.asked {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestBypass: who may skip a service skips it, and only it; both outcomes are recorded.
func TestBypass(t *testing.T) {
	c := cluster(t)
	delegated(t, &delegate{validate: refusing}).declare(t, c, "strict")
	a := started(t, c)
	r := named("c")
	r.Bypass = []string{"other"}
	if _, err := a.Validate(t.Context(), r); err == nil || !strings.Contains(err.Error(), "denied the request") {
		t.Errorf("bypassing another one: %v", err)
	}
	r.Bypass = []string{"strict"}
	got, err := a.Validate(t.Context(), r)
	if services.AsStatus(err).Code != 403 || !strings.Contains(err.Error(), `cannot bypass`) || got.AuditAnnotations["bypass.extension.portico.dev/strict"] != "refused" {
		t.Errorf("without permission: %+v, %v", got, err)
	}
	r.User = services.UserInfo{Name: "bypasser", Groups: []string{"system:masters"}}
	got, err = a.Validate(t.Context(), r)
	if err != nil || got.AuditAnnotations["bypass.extension.portico.dev/strict"] != "bypassed" {
		t.Errorf("with permission: %+v, %v", got, err)
	}
}

// TestConditionsOfServices: match conditions are those of webhooks.
func TestConditionsOfServices(t *testing.T) {
	c := cluster(t)
	d := delegated(t, &delegate{validate: refusing})
	d.declare(t, c, "some", `"matchConditions":[{"name":"x","expression":"object.metadata.name.startsWith('x')"}]`)
	a := started(t, c)
	if _, err := a.Validate(t.Context(), named("a")); err != nil {
		t.Error(err)
	}
	if _, err := a.Validate(t.Context(), named("xa")); err == nil {
		t.Error("the service was not asked")
	}
}

var _ services.Admission = (*delegate)(nil)
