package admission_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
)

type review = func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error)

// returning returns an answer with an object.
func returning(object string) review {
	return func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
		return services.AdmissionResponse{Object: []byte(object)}, nil
	}
}

func failing(err error) review {
	return func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
		return services.AdmissionResponse{}, err
	}
}

// silent answers when the caller has given up.
func silent(ctx context.Context, _ services.AdmissionRequest) (services.AdmissionResponse, error) {
	<-ctx.Done()
	return services.AdmissionResponse{}, ctx.Err()
}

// overHTTP returns the endpoint and trust of a service that speaks AdmissionReview.
func overHTTP(t *testing.T, handle func(w http.ResponseWriter, uid string)) (endpoint, trust string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, rest, _ := strings.Cut(string(body), `"uid":"`)
		uid, _, _ := strings.Cut(rest, `"`)
		handle(w, uid)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return fmt.Sprintf(`"endpoint":{"url":%q}`, s.URL), fmt.Sprintf(`"trust":{"caBundle":%q}`, base64.StdEncoding.EncodeToString(ca))
}

func reviewed(uid, response string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.platform.io/v1","kind":"AdmissionReview","response":{"uid":%q,%s}}`, uid, response)
}

// mute is a listener that accepts connections and says nothing.
func mute(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// gone is an address where nobody listens.
func gone(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// fault is a service that is broken in one way, as fields of its spec.
type fault func(t *testing.T) []string

func faultyGRPC(mutate review) fault {
	return func(t *testing.T) []string {
		d := delegated(t, &delegate{mutate: mutate, validate: mutate})
		return []string{fmt.Sprintf(`"endpoint":{"addresses":[%q]}`, d.address),
			fmt.Sprintf(`"trust":{"serverName":"delegate","caBundle":%q}`, base64.StdEncoding.EncodeToString(d.ca))}
	}
}

func faultyHTTP(handle func(w http.ResponseWriter, uid string)) fault {
	return func(t *testing.T) []string {
		endpoint, trust := overHTTP(t, handle)
		return []string{endpoint, trust, `"protocol":"webhook"`}
	}
}

func answering(response string) fault {
	return faultyHTTP(func(w http.ResponseWriter, uid string) { _, _ = io.WriteString(w, reviewed(uid, response)) })
}

func patch(operations string) string {
	return `"allowed":true,"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(operations)) + `"`
}

// faults are all ways in which a service is broken, with a part of the message.
func faults() map[string]struct {
	of   fault
	says string
} {
	at := func(address func(*testing.T) string) fault {
		return func(t *testing.T) []string { return []string{fmt.Sprintf(`"endpoint":{"addresses":[%q]}`, address(t))} }
	}
	return map[string]struct {
		of   fault
		says string
	}{
		"dead":         {at(gone), ""},
		"mute":         {at(mute), ""},
		"no such name": {at(func(*testing.T) string { return "nobody.invalid:1" }), "available"},
		"slow":         {faultyGRPC(silent), "in time"},
		"huge":         {faultyGRPC(returning(`"` + strings.Repeat("a", 9<<20) + `"`)), "larger than max"},
		"large":        {faultyGRPC(returning(`{"a":"` + strings.Repeat("a", 4<<20) + `"}`)), "larger than max"},
		"many causes":  {faultyGRPC(failing(&services.Status{Code: 403, Details: &services.StatusDetails{Causes: make([]services.StatusCause, 200_000)}})), "RST_STREAM"},
		"many timings": {faultyGRPC(func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
			return services.AdmissionResponse{Timings: make([]services.Timing, 100_000)}, nil
		}), "more than 20000 fields"},
		"many warnings": {faultyGRPC(func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
			return services.AdmissionResponse{Warnings: make([]string, 200_000)}, nil
		}), "more than 20000 fields"},
		"no JSON":                {faultyGRPC(returning("{")), "no object"},
		"no object":              {faultyGRPC(returning("[]")), "no object"},
		"another object":         {faultyGRPC(returning(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"here","uid":"u"}}`)), "another object"},
		"another kind":           {faultyGRPC(returning(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c","namespace":"here","uid":"u"}}`)), "another object"},
		"an error":               {faultyGRPC(failing(errors.New("disk full"))), "disk full"},
		"an error of gRPC":       {faultyGRPC(failing(grpcstatus.Error(codes.Unimplemented, "what"))), ""},
		"a refusal that is none": {faultyGRPC(failing(&services.Status{Code: 200, Message: "fine"})), "no error"},
		"HTTP slow":              {faultyHTTP(func(http.ResponseWriter, string) { <-time.After(1500 * time.Millisecond) }), "in time"},
		"HTTP closes":            {faultyHTTP(func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }), ""},
		"HTTP error":             {faultyHTTP(func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusTeapot) }), "418"},
		"HTTP redirect": {faultyHTTP(func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
		}), "302"},
		"HTTP no JSON": {faultyHTTP(func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, "<html>") }), "its response is not"},
		"HTTP huge": {faultyHTTP(func(w http.ResponseWriter, uid string) {
			_, _ = io.WriteString(w, reviewed(uid, patch(strings.Repeat(" ", 9<<20))))
		}), "more than"},
		"HTTP another uid":         {faultyHTTP(func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, reviewed("other", `"allowed":true`)) }), `expected response.uid=`},
		"HTTP no response":         {faultyHTTP(func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, `{}`) }), "webhook response was absent"},
		"HTTP bad patch":           {answering(patch(`[{"op":"replace","path":"/nothing/here","value":1}]`)), "patch cannot be applied"},
		"HTTP no patch":            {answering(patch(`{"op"`)), "patch cannot be applied"},
		"HTTP patches the name":    {answering(patch(`[{"op":"replace","path":"/metadata/name","value":"other"}]`)), "another object"},
		"HTTP patches everything":  {answering(patch(`[{"op":"replace","path":"","value":1}]`)), ""},
		"HTTP patch without type":  {answering(`"allowed":true,"patch":"W10="`), "response.patch but not response.patchType"},
		"HTTP patch of other type": {answering(strings.Replace(patch(`[{"op":"add","path":"/data","value":{}}]`), "JSONPatch", "Merge", 1)), `patch cannot be applied: unsupported patch type "Merge"`},
		"HTTP patches too much":    {answering(patch("[" + strings.Repeat(`{"op":"add","path":"/data","value":{}},`, 10000) + `{"op":"remove","path":"/data"}]`)), "patch cannot be applied"},
	}
}

// TestAdmissionServiceFaults: a broken service fails the requests that it is asked about,
// in time, or none of them if its failure policy is Ignore.
func TestAdmissionServiceFaults(t *testing.T) {
	for name, x := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t)
			seconds := 30 // for those that answer, which takes long on a busy machine
			if x.says == "" || x.says == "in time" || x.says == "available" {
				seconds = 1
			}
			fields := append([]string{`"phase":"Mutate"`, `"budgetPercent":100`, fmt.Sprintf(`"timeoutSeconds":%d`, seconds)}, x.of(t)...)
			declare(t, c, "broken", fields...)
			a := started(t, c)
			began := time.Now()
			_, err := a.Mutate(t.Context(), named("c"))
			s := services.AsStatus(err)
			if s == nil || s.Code != http.StatusInternalServerError || !strings.Contains(s.Message, `failed calling admission service "broken"`) || !strings.Contains(s.Message, x.says) {
				t.Errorf("with policy Fail: %v", err)
			}
			took := time.Since(began)
			for n := 0; n < 2 && seconds == 1 && took > 4*time.Second; n++ { // without timeoutSeconds each would take 5 s
				began = time.Now()
				_, _ = a.Mutate(t.Context(), named("c"))
				took = min(took, time.Since(began))
			}
			if seconds == 1 && took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			other := createOf("", "secrets", `{"metadata":{"name":"s"}}`)
			if _, err := a.Mutate(t.Context(), other); err != nil {
				t.Errorf("a request that is none of its business: %v", err)
			}
			c = cluster(t)
			declare(t, c, "broken", append(fields, `"failurePolicy":"Ignore"`)...)
			got, err := started(t, c).Mutate(t.Context(), named("c"))
			if err != nil || got.Object != nil || !strings.Contains(got.AuditAnnotations["mutate.extension.portico.dev/broken"], `"verdict":"failed"`) {
				t.Errorf("with policy Ignore: %+v, %v", got.AuditAnnotations, err)
			}
		})
	}
}

// TestAdmissionServiceFaultsThatEnd: the circuit of a service that does not answer opens,
// so that requests do not wait for it, and closes when it answers again.
func TestAdmissionServiceFaultsThatEnd(t *testing.T) {
	c := cluster(t)
	var slow atomic.Bool
	d := delegated(t, &delegate{validate: func(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
		if slow.Load() {
			return silent(ctx, r)
		}
		return services.AdmissionResponse{}, nil
	}})
	d.declare(t, c, "sometimes", `"phase":"Validate"`, `"timeoutSeconds":1`)
	a := started(t, c)
	ask := func() (time.Duration, error) {
		began := time.Now()
		_, err := a.Validate(t.Context(), named("c"))
		return time.Since(began), err
	}
	if _, err := ask(); err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 8 { // clients in a hurry do not open it
		_, _ = a.Validate(hurried, named("c"))
	}
	for n := range 5 {
		if took, err := ask(); err == nil || took < 900*time.Millisecond {
			t.Fatalf("call %d: %v after %v", n, err, took)
		}
	}
	quickest := time.Hour
	for n := 0; n < 10 && quickest > 500*time.Millisecond; n++ { // one call a second is made, and takes one
		took, err := ask()
		if quickest = min(quickest, took); err == nil {
			t.Error("with an open circuit: no error")
		}
	}
	if quickest > 500*time.Millisecond {
		t.Errorf("with an open circuit: after %v", quickest)
	}
	slow.Store(false)
	until(t, "the circuit is closed", func() bool { _, err := ask(); return err == nil })
}

// TestAdmissionServiceThatIsNotHealthy: a replica that says so is not asked while another
// one is there, nor is one that has gone.
func TestAdmissionServiceThatIsNotHealthy(t *testing.T) {
	c := cluster(t)
	d, other := delegated(t, &delegate{}), delegated(t, &delegate{})
	trust := base64.StdEncoding.EncodeToString(append(d.ca, other.ca...))
	declare(t, c, "two", fmt.Sprintf(`"endpoint":{"addresses":[%q,%q]}`, d.address, other.address), fmt.Sprintf(`"trust":{"serverName":"delegate","caBundle":%q}`, trust))
	a := started(t, c)
	ask := func() {
		for range 20 {
			if _, err := a.Validate(t.Context(), named("c")); err != nil {
				t.Error(err)
			}
		}
	}
	until(t, "both are asked", func() bool { ask(); return len(d.requests()) > 0 && len(other.requests()) > 0 })
	d.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	until(t, "only one is asked", func() bool { ask(); return len(d.requests()) == 0 })
	d.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	until(t, "both are asked again", func() bool { ask(); return len(d.requests()) > 0 })
	other.server.Stop()
	ask()
	if len(d.requests()) != 20 {
		t.Error("a replica that has gone was asked")
	}
}

// TestAdmissionServicesThatLoop: those that undo each other's changes are asked
// twice, and one that makes the requests that it is asked about is bounded by time.
func TestAdmissionServicesThatLoop(t *testing.T) {
	c := cluster(t)
	restless, other := delegated(t, &delegate{mutate: changing("n", "1")}), delegated(t, &delegate{mutate: changing("n", "2")})
	restless.declare(t, c, "restless", `"phase":"Mutate"`)
	other.declare(t, c, "restless-too", `"phase":"Mutate"`)
	var a services.Admission
	var depth atomic.Int32
	recursive := delegated(t, &delegate{validate: func(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
		depth.Add(1)
		return a.Validate(ctx, r)
	}})
	recursive.declare(t, c, "recursive", `"phase":"Validate"`, `"timeoutSeconds":1`)
	a = started(t, c)
	if _, err := a.Mutate(t.Context(), named("c")); err != nil || len(restless.requests()) != 2 || len(other.requests()) != 2 {
		t.Errorf("%v", err)
	}
	quickest := time.Hour
	for n := 0; n < 3 && quickest > 4*time.Second; n++ { // without timeoutSeconds each would take 5 s
		began := time.Now()
		depth.Store(0)
		if _, err := a.Validate(t.Context(), named("c")); err == nil {
			t.Error("no error")
		}
		quickest = min(quickest, time.Since(began))
		if n := depth.Load(); n > 300 {
			t.Errorf("it was asked %d times", n)
		}
	}
	if quickest > 4*time.Second {
		t.Errorf("it took %v", quickest)
	}
	if _, err := a.Mutate(t.Context(), named("c")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
