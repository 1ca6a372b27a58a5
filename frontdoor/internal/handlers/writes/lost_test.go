package writes

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

// losing is a store that makes writes and returns an error of unknown outcome while lose
// is set.
type losing struct {
	services.Store
	lose   bool
	writes int
}

func (l *losing) answer(o services.Object, err error) (services.Object, error) {
	if l.writes++; l.lose && err == nil {
		return services.Object{}, services.OutcomeUnknown("lost")
	}
	return o, err
}

func (l *losing) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	return l.answer(l.Store.Create(ctx, r))
}

func (l *losing) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	return l.answer(l.Store.Update(ctx, r))
}

func (l *losing) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	return l.answer(l.Store.Delete(ctx, r))
}

// TestAnUnknownOutcomeIsFinal: writes of all kinds whose outcome is unknown return the
// error and are not retried.
func TestAnUnknownOutcomeIsFinal(t *testing.T) {
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"two"}}`
	store := &losing{Store: fake.New(t).Store()}
	c := newClient(t, store, "10.0.0.0/24")
	for _, w := range []struct{ what, method, path, body string }{
		{"create", "POST", configMaps, strings.Replace(body, `"a"},`, `"b"},`, 1)},
		{"create with a prefix", "POST", configMaps, strings.Replace(body, `"name":"a"`, `"generateName":"a"`, 1)},
		{"update", "PUT", configMaps + "/a", body},
		{"update of a version", "PUT", configMaps + "/a", "version"},
		{"patch", "PATCH", configMaps + "/a", `{"data":{"b":"two"}}`},
		{"apply", "APPLY", configMaps + "/a?fieldManager=x&force=true", body},
		{"apply that creates", "APPLY", configMaps + "/c?fieldManager=x", strings.Replace(body, `"a"},`, `"c"},`, 1)},
		{"delete", "DELETE", configMaps + "/a", ""},
		{"delete of a finalized object", "DELETE", configMaps + "/f", ""},
		{"service", "POST", serviceList, service("s", "")},
	} {
		t.Run(w.what, func(t *testing.T) {
			store.lose = false
			_, _ = c.do("DELETE", configMaps+"/a", "")
			made := c.must("POST", configMaps, strings.Replace(body, "two", "one", 1))
			_, _ = c.do("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"f","finalizers":["example.com/x"]}}`)
			if w.body == "version" {
				version := made["metadata"].(map[string]any)["resourceVersion"].(string)
				w.body = strings.Replace(body, `"name":"a"`, `"name":"a","resourceVersion":"`+version+`"`, 1)
			}
			store.lose, store.writes = true, 0
			_, err := c.do(w.method, w.path, w.body)
			s := services.AsStatus(err)
			if s == nil || s.Code != http.StatusGatewayTimeout || s.Reason != services.ReasonTimeout || s.Details != nil && s.Details.RetryAfterSeconds != 0 {
				t.Errorf("got %+v, want a 504 that does not ask to be repeated", s)
			}
			if store.writes != 1 {
				t.Errorf("the store got %d writes, want 1", store.writes)
			}
		})
	}
}

// overtaken is a store in which another client creates every object first, once.
type overtaken struct {
	services.Store
	done bool
}

func (o *overtaken) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	if !o.done {
		o.done = true
		if _, err := o.Store.Create(ctx, r); err != nil {
			return services.Object{}, err
		}
	}
	return o.Store.Create(ctx, r)
}

// TestACreateThatIsOvertakenIsAnUpdate: an apply, or an update that may create, updates
// the object that another client has created in the meantime.
func TestACreateThatIsOvertakenIsAnUpdate(t *testing.T) {
	for method, w := range map[string]struct{ path, body string }{
		"APPLY": {configMaps + "/a?fieldManager=x", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}}`},
		"POST":  {configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"},"data":{"a":"b"}}`},
	} {
		c := newClient(t, &overtaken{Store: fake.New(t).Store()}, "10.0.0.0/24")
		if got := c.must(method, w.path, w.body); got["data"].(map[string]any)["a"] != "b" {
			t.Errorf("%s: %v", method, got)
		}
	}
}
