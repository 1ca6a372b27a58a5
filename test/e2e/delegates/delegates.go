// Package delegates tests admission services as their users see them: what applying an
// AdmissionService does to requests, and what its status says.
package delegates

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/rpc"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	path = "/apis/extension.portico.dev/v1/admissionservices"
	// effect is how soon a change of an AdmissionService must have its effect, also on a busy machine.
	// It takes milliseconds, and for ever if admission does not follow changes. What it really takes
	// is in the log of the test.
	effect = 10 * time.Second
)

// labeller is an admission service that labels ConfigMaps and refuses those named "bad".
type labeller struct{}

func (labeller) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	var o map[string]any
	if err := json.Unmarshal(r.Object, &o); err != nil {
		return services.AdmissionResponse{}, err
	}
	o["metadata"].(map[string]any)["labels"] = map[string]any{"seen-by": "labeller"}
	raw, err := json.Marshal(o)
	return services.AdmissionResponse{Object: raw, Warnings: []string{"labelled"}}, err
}

func (labeller) Validate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if r.Name == "bad" {
		return services.AdmissionResponse{}, services.Forbidden("", "configmaps", r.Name, "it is bad")
	}
	return services.AdmissionResponse{}, nil
}

// serve serves the labeller over TLS until the test ends.
func serve(t *testing.T) (address string, ca []byte) {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), "labeller")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	if ca, err = os.ReadFile(files.CA); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})))
	rpc.RegisterAdmission(server, labeller{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), ca
}

// stage is a namespace with an admission service for its ConfigMaps.
type stage struct {
	*testing.T
	namespace string
	doors     []*cluster.Cluster // of one suite; any of them is asked
}

func (s stage) ask(method, path, body string, header ...string) cluster.Answer {
	s.Helper()
	r := cluster.Request{Method: method, Path: path, Body: body, Header: http.Header{}}
	if method == http.MethodPatch {
		r.Type = "application/apply-patch+yaml"
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return s.doors[rand.IntN(len(s.doors))].Ask(s.T, r)
}

// try makes a dry run of creating a ConfigMap.
func (s stage) try(name string, header ...string) cluster.Answer {
	s.Helper()
	return s.ask(http.MethodPost, "/api/v1/namespaces/"+s.namespace+"/configmaps?dryRun=All", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name), header...)
}

// within fails the test unless a condition holds in time; it must then hold for a number of
// requests, which reach all front doors and all replicas of admission.
func (s stage) within(limit time.Duration, what string, ok func() bool) {
	s.Helper()
	began := time.Now()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for held := 0; held < 20; {
		if ok() {
			held++
			continue
		}
		if held = 0; time.Since(began) > limit {
			s.Fatalf("not in %v: %s", limit, what)
		}
		<-ticks.C
	}
	s.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond))
}

// Services applies an AdmissionService, changes it, and deletes it.
func Services(t *testing.T, c *cluster.Cluster) { ServicesOf(t, c) }

// ServicesOf does the same at the front doors of one suite: each change counts at all of them.
func ServicesOf(t *testing.T, all ...*cluster.Cluster) {
	address, ca := serve(t)
	c := all[0]
	s := stage{t, "delegates-" + strings.ToLower(c.Vocabulary.Name), all}
	name := s.namespace
	if made := s.ask(http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"delegates":"yes"}}}`, name)); made.Code >= http.StatusMultipleChoices {
		t.Fatalf("the namespace: %d %s", made.Code, made.Body)
	}
	t.Cleanup(func() { // the context of the test has ended
		_, _ = c.Do(context.Background(), cluster.Request{Method: http.MethodDelete, Path: path + "/" + name})
	})
	manifest := func(more string) string {
		return fmt.Sprintf(`{"apiVersion":"extension.portico.dev/v1","kind":"AdmissionService","metadata":{"name":%q},"spec":{
			"endpoint":{"addresses":[%q]},"trust":{"serverName":"labeller","caBundle":%q},"sideEffects":"None","namespaceSelector":{"matchLabels":{"delegates":"yes"}},
			"rules":[{"operations":["CREATE","UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]%s}}`, name, address, base64.StdEncoding.EncodeToString(ca), more)
	}
	apply := func(more string) cluster.Answer {
		return s.ask(http.MethodPatch, path+"/"+name+"?fieldManager=e2e&force=true", manifest(more))
	}
	if refused := apply(`,"mode":"Canary","order":1.5`); refused.Code != http.StatusUnprocessableEntity && refused.Code != http.StatusBadRequest {
		t.Errorf("a wrong type: %d %s", refused.Code, refused.Body)
	}
	if refused := apply(`,"endpoint":{"service":{"namespace":"a","name":"b","port":"no_name"}}`); refused.Code != http.StatusUnprocessableEntity || !strings.Contains(refused.Body, `"field":"spec.endpoint.service.port"`) {
		t.Errorf("a wrong port: %d %s", refused.Code, refused.Body)
	}
	refused := apply(`,"mode":"Canary","matchConditions":[{"name":"a","expression":"object."}]`)
	if refused.Code != http.StatusUnprocessableEntity || !strings.Contains(refused.Body, `"field":"spec.canaryPercent"`) || !strings.Contains(refused.Body, `"field":"spec.matchConditions[0].expression"`) {
		t.Errorf("an invalid one: %d %s", refused.Code, refused.Body)
	}
	if made := apply(""); made.Code >= http.StatusMultipleChoices || !strings.Contains(made.Body, `"failurePolicy":"Fail"`) {
		t.Fatalf("applying it: %d %s", made.Code, made.Body)
	}
	s.within(effect, "the service takes part", func() bool {
		return strings.Contains(s.try("good").Body, `"seen-by":"labeller"`) && s.try("bad").Code == http.StatusForbidden
	})
	s.answers()
	s.status(name)
	if changed := apply(`,"mode":"Shadow"`); changed.Code != http.StatusOK {
		t.Fatalf("making it a shadow: %d %s", changed.Code, changed.Body)
	}
	s.within(effect, "the shadow is not enforced", func() bool { return s.try("bad").Code < http.StatusMultipleChoices })
	apply("")
	s.within(effect, "it is enforced again", func() bool { return s.try("bad").Code == http.StatusForbidden })
	s.byService(address, apply)
	if gone := s.ask(http.MethodDelete, path+"/"+name, ""); gone.Code != http.StatusOK {
		t.Fatalf("deleting it: %d %s", gone.Code, gone.Body)
	}
	s.within(effect, "the service is gone", func() bool { return s.try("bad").Code < http.StatusMultipleChoices })
}

// byService makes the AdmissionService refer to a Service, by the name of its port.
func (s stage) byService(address string, apply func(more string) cluster.Answer) {
	s.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		s.Fatal(err)
	}
	// Endpoints cannot be on this machine.
	service := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"labeller"},"spec":{"type":"ExternalName","externalName":"localhost","ports":[{"name":"admission","port":` + port + `}]}}`
	if made := s.ask(http.MethodPost, "/api/v1/namespaces/"+s.namespace+"/services", service); made.Code >= http.StatusMultipleChoices {
		s.Fatalf("the Service: %d %s", made.Code, made.Body)
	}
	reference := func(port string) string {
		return fmt.Sprintf(`,"endpoint":{"service":{"namespace":%q,"name":"labeller","port":%q}}`, s.namespace, port)
	}
	if changed := apply(reference("other")); changed.Code != http.StatusOK {
		s.Fatalf("a reference to a Service: %d %s", changed.Code, changed.Body)
	}
	s.within(effect, "a port that the Service does not have", func() bool { return s.try("good").Code == http.StatusInternalServerError })
	apply(reference("admission"))
	s.within(effect, "the service is found by a Service", func() bool {
		return s.try("bad").Code == http.StatusForbidden && s.try("good").Code < http.StatusMultipleChoices
	})
}

// answers checks warnings, timings, and a request that skips the service.
func (s stage) answers() {
	s.Helper()
	good := s.try("good", "Portico-Server-Timing", "true")
	if timing := strings.Join(good.Header.Values("Server-Timing"), " "); !strings.Contains(timing, fmt.Sprintf("admission-service;desc=%q;dur=", s.namespace)) {
		s.Errorf("Server-Timing: %q", timing)
	}
	if warnings := good.Header.Get("Warning"); !strings.Contains(warnings, "labelled") {
		s.Errorf("warnings: %q", warnings)
	}
	if timing := s.try("good").Header.Values("Server-Timing"); len(timing) > 0 {
		s.Errorf("Server-Timing of a client that does not ask: %q", timing)
	}
	if bypassed := s.try("bad", "Portico-Bypass-Admission", s.namespace); bypassed.Code >= http.StatusMultipleChoices {
		s.Errorf("skipping the service: %d %s", bypassed.Code, bypassed.Body)
	}
	stranger := s.try("bad", "Portico-Bypass-Admission", s.namespace, "Impersonate-User", "nobody", "Impersonate-Group", "strangers")
	if stranger.Code != http.StatusForbidden {
		s.Errorf("a stranger: %d %s", stranger.Code, stranger.Body)
	}
}

// status waits for the status and checks the views of the processes of admission.
func (s stage) status(name string) {
	s.Helper()
	const patience = 30 * time.Second
	s.within(patience, "the status says that it is available", func() bool {
		var o struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				ObservedGeneration int64
				Conditions         []struct{ Type, Status string }
				Observers          []struct {
					Breaker  string
					Replicas []struct{ Ready bool }
				}
			}
		}
		s.ask(http.MethodGet, path+"/"+name, "").Decode(s.T, &o)
		if o.Status.ObservedGeneration != o.Metadata.Generation || len(o.Status.Conditions) != 2 || len(o.Status.Observers) == 0 {
			return false
		}
		for _, c := range o.Status.Conditions {
			if c.Status != "True" {
				return false
			}
		}
		return o.Status.Observers[0].Breaker == "Closed" && len(o.Status.Observers[0].Replicas) == 1 && o.Status.Observers[0].Replicas[0].Ready
	})
}

var _ services.Admission = labeller{}
