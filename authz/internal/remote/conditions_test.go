package remote

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/release"
)

func conditions(t *testing.T, expressions ...string) *authorizationcel.CELMatcher {
	t.Helper()
	environment, err := cel.New(cel.Config{Release: release.V136}).Bounded()
	if err != nil {
		t.Fatal(err)
	}
	var all []apiserver.WebhookMatchCondition
	for _, x := range expressions {
		all = append(all, apiserver.WebhookMatchCondition{Expression: x})
	}
	matcher, invalid := validation.ValidateAndCompileMatchConditions(authorizationcel.NewCompiler(environment), all)
	if len(invalid) > 0 {
		t.Fatal(invalid)
	}
	return matcher
}

// TestConditions: the service is only asked about the requests that all conditions select.
func TestConditions(t *testing.T) {
	pods := services.Attributes{User: jane, Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "a", Name: "b"}
	path := services.Attributes{User: jane, Verb: "get", Path: "/healthz"}
	for name, c := range map[string]struct {
		of          services.Attributes
		expressions []string
		asked       bool
		failure     string
	}{
		"a resource": {of: pods, asked: true, expressions: []string{
			"has(request.resourceAttributes) && !has(request.nonResourceAttributes)",
			"request.resourceAttributes.group == 'apps' && request.resourceAttributes.version == 'v1' && request.resourceAttributes.verb == 'get'",
			"request.resourceAttributes.resource == 'deployments' && request.resourceAttributes.subresource == 'scale'",
			"request.resourceAttributes.namespace == 'a' && request.resourceAttributes.name == 'b'"}},
		"a path":  {of: path, asked: true, expressions: []string{"!has(request.resourceAttributes) && request.nonResourceAttributes.path == '/healthz' && request.nonResourceAttributes.verb == 'get'"}},
		"a user":  {of: path, asked: true, expressions: []string{"request.user == 'jane' && request.uid == '7' && 'g' in request.groups && request.extra['scope'] == ['a']"}},
		"another": {of: pods, expressions: []string{"request.user == 'jane'", "request.resourceAttributes.namespace == 'b'"}},
		// One that is false decides before one that fails.
		"false and a failure": {of: path, expressions: []string{"request.extra['x'] == ['a']", "false"}},
		"a failure":           {of: path, expressions: []string{"request.extra['x'] == ['a']"}, failure: "no such key"},
		"a costly one":        {of: path, expressions: []string{"request.nonResourceAttributes.path.replace('', request.nonResourceAttributes.path.replace('', 'x'.replace('', '" + strings.Repeat("y", 1<<16) + "'))).size() > 0"}, failure: "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, deny := range []bool{false, true} {
				s := newService(t, answering(`{"allowed":true}`))
				w := s.webhook(t, "v1")
				w.config.Conditions, w.config.DenyFailures = conditions(t, c.expressions...), deny
				d, err := w.Authorize(t.Context(), c.of)
				if failed := c.failure != ""; (err != nil) != (failed && !deny) || d.Denied != (failed && deny) {
					t.Errorf("%+v, %v", d, err)
				}
				if err != nil && !strings.Contains(err.Error(), c.failure) || !strings.Contains(d.EvaluationError, c.failure) && deny {
					t.Errorf("%+v, %v", d, err)
				}
				if d.Allowed != c.asked || s.calls.Load() > 0 != c.asked {
					t.Errorf("%+v after %d calls", d, s.calls.Load())
				}
			}
		})
	}
}

// TestFailuresDeny: no failure lets a request get past a service whose failures deny, also not
// the end of a request with a short timeout of the client's choice.
func TestFailuresDeny(t *testing.T) {
	for name, answer := range map[string]func(int32, http.ResponseWriter, string){
		"an error": func(_ int32, w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusForbidden) },
		"no JSON":  func(_ int32, w http.ResponseWriter, _ string) { _, _ = w.Write([]byte("yes")) },
		"both":     answering(`{"allowed":true,"denied":true}`),
	} {
		w := newService(t, answer).webhook(t, "v1")
		w.config.DenyFailures = true
		ask := services.Attributes{User: jane, Verb: "get", Resource: "pods"}
		if d, err := w.Authorize(t.Context(), ask); err != nil || !d.Denied || d.Allowed || d.EvaluationError == "" {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if d, err := w.Authorize(ended, ask); err != nil || !d.Denied || d.Allowed {
			t.Errorf("%s, after the request: %+v, %v", name, d, err)
		}
	}
}

// TestTimeout: a call takes no longer than configured.
func TestTimeout(t *testing.T) {
	end := make(chan struct{})
	s := newService(t, func(_ int32, _ http.ResponseWriter, _ string) { <-end })
	defer close(end)
	w := s.webhook(t, "v1")
	w.config.Timeout = 50 * time.Millisecond
	began := time.Now()
	for _, deny := range []bool{false, true} {
		w.config.DenyFailures = deny
		if d, err := w.Authorize(t.Context(), services.Attributes{User: jane, Verb: "get", Resource: "pods"}); (err == nil) != deny || d.Denied != deny || d.Allowed {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if took := time.Since(began); took > Timeout/2 {
		t.Errorf("it took %v", took)
	}
}

// TestNothingIsCached: without a TTL, each request asks.
func TestNothingIsCached(t *testing.T) {
	s := newService(t, answering(`{"allowed":true}`))
	w := s.webhook(t, "v1")
	w.config.AllowedTTL = 0
	for range 2 {
		if _, err := w.Authorize(t.Context(), services.Attributes{User: jane, Verb: "get", Resource: "pods"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}
