package writes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
)

func configMap(name, metadata string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q%s}}`, name, metadata)
}

// TestDeleteOptions checks invalid and valid delete options, in the body and in the query.
func TestDeleteOptions(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.must("POST", configMaps, configMap("a", ""))
	for _, o := range []struct{ query, body, reason, message string }{
		{"propagationPolicy=Foo", "", services.ReasonInvalid, `propagationPolicy: Unsupported value: "Foo"`},
		{"propagationPolicy=Orphan&orphanDependents=true", "", services.ReasonInvalid, "orphanDependents and deletionPropagation cannot be both set"},
		{"", `{"dryRun":["All","Foo"]}`, services.ReasonInvalid, `dryRun: Unsupported value: ["All","Foo"]`},
		{"", `{"dryRun":[""]}`, services.ReasonInvalid, `dryRun: Unsupported value: [""]`},
		{"dryRun=", "", services.ReasonInvalid, `dryRun: Unsupported value: [""]`},
		{"dryRun=", `{}`, services.ReasonInvalid, `dryRun: Unsupported value: [""]`},
		{"dryRun=", `{"dryRun":["All"]}`, services.ReasonInvalid, `dryRun: Unsupported value: ["All",""]`},
		{"gracePeriodSeconds=", "", services.ReasonBadRequest, "invalid syntax"},
		{"uid=x", "", services.ReasonConflict, `on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (`},
		{"", `{"preconditions":{"resourceVersion":"1"}}`, services.ReasonConflict, "The object might have been modified"},
		{"", `{"kind":"Pod","apiVersion":"v1"}`, services.ReasonBadRequest, "Pod"},
	} {
		_, err := c.do("DELETE", configMaps+"/a?"+o.query, o.body)
		if !services.IsReason(err, o.reason) || !strings.Contains(err.Error(), o.message) {
			t.Errorf("?%s %s: got %v, want %s %q", o.query, o.body, err, o.reason, o.message)
		}
	}
	for method, x := range map[string][2]string{"POST": {"", configMap("b", "")}, "PUT": {"/a", configMap("a", `,"labels":{"a":"b"}`)},
		"PATCH": {"/a", `{"metadata":{"labels":{"a":"b"}}}`}, "DELETE": {"", ""}} {
		if _, err := c.do(method, configMaps+x[0]+"?dryRun=", x[1]); !services.IsReason(err, services.ReasonInvalid) {
			t.Errorf("%s with an empty dryRun: %v", method, err)
		}
	}
	c.must("DELETE", configMaps+"/a?dryRun=All", `{}`)
	if got := c.must("DELETE", configMaps+"/a?orphanDependents=maybe", ""); fmt.Sprint(finalizersOf(got)) != "[orphan]" {
		t.Errorf("whatever is not false is true: got %v", got)
	}
}

// TestDeletingObject deletes an object with finalizers until it is removed.
func TestDeletingObject(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.must("POST", configMaps, configMap("a", `,"finalizers":["x.io/a"]`))
	for query, code := range map[string]int64{"?orphanDependents=false": http.StatusAccepted, "": http.StatusOK} {
		if c.must("DELETE", configMaps+"/a"+query, ""); c.code.Load() != code {
			t.Errorf("%s: status %d, want %d", query, c.code.Load(), code)
		}
	}
	for body, message := range map[string]string{
		`{"metadata":{"finalizers":["x.io/a","x.io/b"]}}`:             `[]string{"x.io/b"}`,
		`{"metadata":{"deletionGracePeriodSeconds":7}}`:               "metadata.deletionGracePeriodSeconds: Invalid value: 7: field is immutable",
		`{"metadata":{"finalizers":["foregroundDeletion","orphan"]}}`: "cannot be both set",
	} {
		if _, err := c.do("PATCH", configMaps+"/a", body); !services.IsReason(err, services.ReasonInvalid) || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: got %v, want %q", body, err, message)
		}
	}
	if _, err := c.do("POST", configMaps, configMap("a", "")); err == nil || !strings.HasPrefix(err.Error(), "object is being deleted: ") {
		t.Errorf("create over it: %v", err)
	}
	if last := c.must("PATCH", configMaps+"/a", `{"metadata":{"finalizers":null}}`); finalizersOf(last) != nil {
		t.Errorf("the last answer still has finalizers: %v", last)
	}
	c.refused(services.ReasonNotFound, "DELETE", configMaps+"/a", "")
}

// TestPropagation checks the default propagation policies.
func TestPropagation(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	template := `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"%s","containers":[{"name":"c","image":"i"}]}}`
	always, never := fmt.Sprintf(template, "Always"), fmt.Sprintf(template, "Never")
	for _, o := range []struct{ list, query, spec, kept string }{
		{"/api/v1/namespaces/default/replicationcontrollers", "", `{"selector":{"a":"b"},` + always + `}`, "[orphan]"},
		{"/apis/batch/v1/namespaces/default/jobs", "", "{" + never + "}", "[orphan]"},
		{"/apis/batch/v1/namespaces/default/jobs", "propagationPolicy=Foreground", "{" + never + "}", "[foregroundDeletion]"},
		{"/apis/apps/v1/namespaces/default/deployments", "propagationPolicy=Orphan", `{"selector":{"matchLabels":{"a":"b"}},` + always + `}`, "[orphan]"},
	} {
		name := "x" + o.query[:min(len(o.query), 1)]
		c.must("POST", o.list, fmt.Sprintf(`{"metadata":{"name":%q},"spec":%s}`, name, o.spec))
		marked := c.must("DELETE", o.list+"/"+name+"?"+o.query, "")
		generation, _, _ := unstructured.NestedFloat64(marked, "metadata", "generation")
		if fmt.Sprint(finalizersOf(marked)) != o.kept || generation != 2 {
			t.Errorf("%s ?%s: got finalizers %v, generation %v; want %s, 2", o.list, o.query, finalizersOf(marked), generation, o.kept)
		}
	}
}

// TestOrphanWarning: later releases warn of pods that the deletion of a Job orphans, unless the
// client says that it shall.
func TestOrphanWarning(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	for _, o := range []struct {
		release release.Release
		path    string
		want    bool
	}{
		{release.V136, "/apis/batch/v1/namespaces/default/jobs/a", true},
		{release.V136, "/apis/batch/v1/namespaces/default/jobs/a?propagationPolicy=Orphan", false},
		{release.V136, "/apis/batch/v1/namespaces/default/jobs/a?orphanDependents=true", false},
		{release.V136, "/api/v1/namespaces/default/replicationcontrollers/a", false},
		{release.V121, "/apis/batch/v1/namespaces/default/jobs/a", false},
	} {
		r := &request.Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodDelete, o.path, nil), Audit: &audit.Record{}}
		if _, err := r.Identify(handlertest.EngineOf(t, o.release)); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := c.handlers.Delete(w, r); !services.IsReason(err, services.ReasonNotFound) {
			t.Fatal(err)
		}
		if warned := strings.Contains(w.Header().Get("Warning"), "child pods are preserved by default"); warned != o.want {
			t.Errorf("%s at %s: warned %v", o.path, o.release, warned)
		}
	}
}

// TestDeleteCollection deletes the objects that a list with the same parameters returns,
// and returns them in the order of the list.
func TestDeleteCollection(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	for i := range 5 {
		c.must("POST", configMaps, configMap(fmt.Sprintf("c%d", i), `,"labels":{"a":"b"}`))
	}
	c.must("POST", configMaps, configMap("other", ""))
	for _, o := range []struct{ query, want string }{
		{"labelSelector=a&dryRun=All", "[c0 c1 c2 c3 c4]"}, {"labelSelector=a&limit=2", "[c0 c1]"},
		{"fieldSelector=metadata.name=c3", "[c3]"}, {"labelSelector=a", "[c2 c4]"}, {"", "[other]"},
	} {
		values, _ := url.ParseQuery(o.query)
		list := c.must("DELETE", configMaps+"?"+values.Encode(), "")
		var names []string
		for _, item := range list["items"].([]any) {
			name, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "name")
			names = append(names, name)
		}
		if fmt.Sprint(names) != o.want {
			t.Errorf("?%s: got %v, want %s", o.query, names, o.want)
		}
	}
	c.refused(services.ReasonBadRequest, "DELETE", configMaps+"?limit=x", "")
}

func finalizersOf(object map[string]any) []string {
	list, _, _ := unstructured.NestedStringSlice(object, "metadata", "finalizers")
	return list
}

// TestSystemPriorityClasses: the priority classes of the system cannot be deleted; others can.
func TestSystemPriorityClasses(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	const list = "/apis/scheduling.k8s.io/v1/priorityclasses"
	for name, value := range map[string]int{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000} {
		c.must("POST", list, fmt.Sprintf(`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":%q},"value":%d}`, name, value))
		for _, query := range []string{"", "?dryRun=All"} {
			c.refused(services.ReasonForbidden, "DELETE", list+"/"+name+query, "")
		}
	}
	c.must("POST", list, `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":5}`)
	c.must("DELETE", list+"/high", "")
}
