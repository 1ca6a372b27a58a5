package rights

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// reader is a user who may read ConfigMaps in some namespaces, as seen by the administrator.
type reader struct {
	*stage
	name string
}

// Permitted tests lists and watches with permitted=true: they return what is in the namespaces
// that the user may read, and end when these change.
func Permitted(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	jane, nobody := reader{s, s.id + "-jane"}, reader{s, s.id + "-nobody"}
	for _, namespace := range []string{"a", "b", "hidden"} {
		s.do(c, "POST /api/v1/namespaces", `{"metadata":{"name":"$id-`+namespace+`"}}`, 0)
		s.Cleanup(func() { s.remove("/api/v1/namespaces/$id-" + namespace) })
		for i := range 3 {
			s.configMap(namespace, fmt.Sprint("m", i))
		}
		s.do(c, "POST /apis/$rbac/v1/namespaces/$id-"+namespace+"/roles", `{"metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list","watch"]}]}`, 0)
	}
	jane.grant("a")
	jane.grant("b")
	t.Run("Lists", func(t *testing.T) { jane.lists(t, nobody) })
	t.Run("Refusals", func(t *testing.T) { jane.refusals(t, nobody) })
	t.Run("Watches", jane.watches)
}

func (s *stage) configMap(namespace, name string) {
	s.Helper()
	s.do(s.admin, "POST /api/v1/namespaces/$id-"+namespace+"/configmaps", `{"metadata":{"name":"`+name+`"}}`, 0)
}

func (r reader) grant(namespace string) {
	r.Helper()
	r.do(r.admin, "POST /apis/$rbac/v1/namespaces/$id-"+namespace+"/rolebindings",
		`{"metadata":{"name":"reader"},"roleRef":{"apiGroup":"$rbac","kind":"Role","name":"reader"},"subjects":[{"kind":"User","apiGroup":"$rbac","name":"`+r.name+`"}]}`, 0)
}

func (r reader) request(path, accept string) cluster.Request {
	return cluster.Request{Path: path, Header: http.Header{"Impersonate-User": {r.name}, "Accept": {accept}}}
}

// page is a list of ConfigMaps, or one chunk of it.
type page struct {
	Metadata struct {
		ResourceVersion, Continue string
		RemainingItemCount        *int64
	}
	Items []struct {
		Metadata struct{ Namespace, Name string }
	}
}

const permittedPath = "/api/v1/configmaps?permitted=true"

// list lists in chunks; 0 for none. It returns the names, and the last chunk.
func (r reader) list(t *testing.T, limit int) (names []string, last page) {
	t.Helper()
	for path := fmt.Sprintf("%s&limit=%d", permittedPath, limit); ; path = fmt.Sprintf("%s&limit=%d&continue=%s", permittedPath, limit, last.Metadata.Continue) {
		a := r.admin.Ask(t, r.request(path, "application/json"))
		if a.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Code, a.Body)
		}
		last = page{}
		a.Decode(t, &last)
		if last.Metadata.RemainingItemCount != nil {
			t.Errorf("a chunk says how many objects follow: %.300s", a.Body)
		}
		for _, o := range last.Items {
			if strings.HasPrefix(o.Metadata.Name, "m") {
				names = append(names, strings.TrimPrefix(o.Metadata.Namespace, r.id+"-")+"/"+o.Metadata.Name)
			} else if !strings.HasPrefix(o.Metadata.Namespace, r.id) {
				t.Errorf("lists %+v", o)
			}
		}
		if last.Metadata.Continue == "" {
			return names, last
		}
	}
}

func (r reader) lists(t *testing.T, nobody reader) {
	want := []string{"a/m0", "a/m1", "a/m2", "b/m0", "b/m1", "b/m2"}
	for _, limit := range []int{0, 1, 2, 3, 500} {
		if names, _ := r.list(t, limit); !slices.Equal(names, want) {
			t.Errorf("in chunks of %d: %v", limit, names)
		}
	}
	if names, last := nobody.list(t, 2); len(names) > 0 || last.Metadata.ResourceVersion == "" {
		t.Errorf("a user without rights lists %v, %+v", names, last)
	}
	for _, accept := range []string{r.admin.Vocabulary.Protobuf, "application/json;as=Table;v=v1;g=" + r.admin.Vocabulary.Group("meta.")} {
		a := r.admin.Ask(t, r.request(permittedPath, accept))
		if a.Code != http.StatusOK || strings.Contains(a.Body, r.id+"-hidden") || !strings.Contains(a.Body, r.id+"-b") {
			t.Errorf("%s: %d %.500q", accept, a.Code, a.Body)
		}
	}
	a := r.admin.Ask(t, cluster.Request{Path: permittedPath})
	if a.Code != http.StatusOK || !strings.Contains(a.Body, r.id+"-hidden") {
		t.Errorf("the administrator: %d %.500s", a.Code, a.Body)
	}
}

func (r reader) refusals(t *testing.T, nobody reader) {
	first := page{}
	r.admin.Ask(t, r.request(permittedPath+"&limit=2", "application/json")).Decode(t, &first)
	for _, c := range []struct {
		what string
		as   reader
		path string
		code int
	}{
		{"an ordinary list", r, "/api/v1/configmaps", http.StatusForbidden},
		{"another value", r, "/api/v1/configmaps?permitted=false", http.StatusForbidden},
		{"another type", r, "/api/v1/secrets", http.StatusForbidden},
		{"a type that is not served", r, "/api/v1/unknown?permitted=true", http.StatusForbidden},
		{"a type in no namespace", r, "/api/v1/nodes?permitted=true", http.StatusForbidden},
		{"one namespace", r, "/api/v1/namespaces/" + r.id + "-a/configmaps?permitted=true", http.StatusBadRequest},
		{"a hidden namespace", r, "/api/v1/namespaces/" + r.id + "-hidden/configmaps?permitted=true", http.StatusForbidden},
		{"the token of another user", nobody, permittedPath + "&continue=" + first.Metadata.Continue, http.StatusBadRequest},
		{"the token for an ordinary list", reader{r.stage, ""}, "/api/v1/configmaps?continue=" + first.Metadata.Continue, http.StatusBadRequest},
		{"the administrator, a type in no namespace", reader{r.stage, ""}, "/api/v1/nodes?permitted=true", http.StatusBadRequest},
	} {
		request := c.as.request(c.path, "application/json")
		if c.as.name == "" {
			request.Header.Del("Impersonate-User")
		}
		if a := r.admin.Ask(t, request); a.Code != c.code {
			t.Errorf("%s: %d %.300s, want %d", c.what, a.Code, a.Body, c.code)
		}
	}
}

// watch opens a watch. The channel gets its events: type, namespace and name, or code.
func (r reader) watch(t *testing.T, query string) <-chan string {
	t.Helper()
	response, err := r.admin.Send(t.Context(), r.request(permittedPath+"&watch=true"+query, "application/json"))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	events := make(chan string, 1000)
	go func() {
		defer response.Body.Close()
		defer close(events)
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			var event struct {
				Type   string
				Object struct {
					Code     int
					Metadata struct{ Namespace, Name string }
				}
			}
			_ = json.Unmarshal(lines.Bytes(), &event)
			o := event.Object
			events <- strings.TrimSpace(fmt.Sprint(event.Type, " ", strings.TrimPrefix(o.Metadata.Namespace, r.id+"-"), "/", o.Metadata.Name, " ", o.Code))
		}
	}()
	return events
}

// until reads events until one of them, which must come before any of a hidden namespace.
func until(t *testing.T, events <-chan string, want string) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	for {
		select {
		case got, open := <-events:
			if got == want {
				return
			}
			if !open || strings.HasPrefix(got, "ERROR") || strings.Contains(got, "hidden") {
				t.Fatalf("got %q, want %s", got, want)
			}
		case <-deadline:
			t.Fatalf("no %s after 15 s", want)
		}
	}
}

const relist = "ERROR / 410"

func (r reader) watches(t *testing.T) {
	_, before := r.list(t, 0)
	events := r.watch(t, "&resourceVersion=0")
	until(t, events, "ADDED b/m2 0")
	r.configMap("hidden", "x1")
	r.configMap("b", "x1")
	until(t, events, "ADDED b/x1 0")

	r.grant("hidden")
	until(t, events, relist)
	if names, _ := r.list(t, 0); len(names) != 9 {
		t.Errorf("after a new right: %v", names)
	}
	until(t, r.watch(t, "&resourceVersion="+before.Metadata.ResourceVersion), relist)

	r.remove("/apis/$rbac/v1/namespaces/$id-hidden/rolebindings/reader")
	events = r.watch(t, "&resourceVersion=0")
	until(t, events, "ADDED b/m2 0")
	began := time.Now()
	r.remove("/apis/$rbac/v1/namespaces/$id-a/rolebindings/reader")
	until(t, events, relist)
	t.Logf("ended %v after the right", time.Since(began))
	if names, _ := r.list(t, 0); len(names) != 3 {
		t.Errorf("after a right was withdrawn: %v", names)
	}
}
