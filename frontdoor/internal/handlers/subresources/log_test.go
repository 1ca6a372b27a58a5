package subresources

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// TestLogs: the logs of a pod never show the pod, and bad parameters are named.
func TestLogs(t *testing.T) {
	b := newBench(t)
	b.pod("one", `,"spec":{"containers":[{"name":"a","image":"secret"}]}`)
	b.pod("two", `,"spec":{"containers":[{"name":"a"},{"name":"b"}],"initContainers":[{"name":"i"}],"ephemeralContainers":[{"name":"e"}]}`)
	b.pod("placed", `,"spec":{"nodeName":"n","containers":[{"name":"a"}]}`)
	for _, c := range []struct {
		path    string
		code    int32
		message string
	}{
		{"one/log", http.StatusNoContent, ""},
		{"one/log?container=a&follow=true&tailLines=0&limitBytes=1&sinceSeconds=1", http.StatusNoContent, ""},
		{"two/log?container=i", http.StatusNoContent, ""},
		{"two/log?container=e", http.StatusNoContent, ""},
		{"one/log?container=b", 400, "container b is not valid for pod one"},
		{"two/log", 400, "a container name must be specified for pod two, choose one of: [a b] or one of the init containers: [i]"},
		{"placed/log", 503, `pods/log: this service does not reach nodes, and cannot connect to pod "placed"`},
		{"none/log", 404, `pods "none" not found`},
		{"one/log?tailLines=-1", 422, `PodLogOptions "one" is invalid: tailLines: Invalid value: "-1": must be an integer greater than or equal to 0`},
		{"one/log?limitBytes=0", 422, `PodLogOptions "one" is invalid: limitBytes: Invalid value: "0": must be an integer greater than or equal to 1`},
		{"one/log?sinceTime=x", 422, `PodLogOptions "one" is invalid: sinceTime: Invalid value: "x": must be an RFC 3339 time`},
		{"one/log?sinceTime=2030-01-02T03:04:05Z&sinceSeconds=5", 422,
			"PodLogOptions \"one\" is invalid: sinceSeconds: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"},
	} {
		r := &request.Request{Audit: &audit.Record{},
			Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/namespaces/default/pods/"+c.path, nil)}
		if _, err := r.Identify(b.engine); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		err := b.handlers.Of(r)(w, r)
		if c.message == "" {
			if err != nil || int32(w.Code) != c.code || w.Body.Len() > 0 {
				t.Errorf("%s: got %d %q, %v", c.path, w.Code, w.Body, err)
			}
			continue
		}
		status := services.AsStatus(err)
		if status == nil || status.Code != c.code || status.Message != c.message || status.Code == 503 && status.Details != nil {
			t.Errorf("%s: got %+v, want %d %s", c.path, status, c.code, c.message)
		}
	}
}
