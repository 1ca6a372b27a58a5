package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// refusal is a bad request and what has to be said about it.
type refusal struct {
	name    string
	request cluster.Request
	code    int
	reason  string // empty when the path is none of the API's, whose answer is text
	field   string // that a cause names; empty when there is none
}

func refusalTable() []refusal {
	const configMaps = "/api/v1/namespaces/default/configmaps"
	post := func(path, body string) cluster.Request {
		return cluster.Request{Method: http.MethodPost, Path: path, Body: body}
	}
	typed := func(mediaType, body string) cluster.Request {
		return cluster.Request{Method: http.MethodPost, Path: configMaps, Type: mediaType, Body: body}
	}
	named := func(metadata string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + metadata + `}}`
	}
	return []refusal{
		{"malformed JSON", post(configMaps, `{"apiVersion":"v1",`), 400, "BadRequest", ""},
		{"malformed YAML", typed("application/yaml", "a: [b\nc: d: e"), 400, "BadRequest", ""},
		{"empty body", post(configMaps, " "), 400, "BadRequest", ""},
		{"unknown kind", post(configMaps, `{"apiVersion":"v1","kind":"Nothing","metadata":{"name":"a"}}`), 400, "BadRequest", ""},
		{"other kind", post(configMaps, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`), 400, "BadRequest", ""},
		{"wrong JSON type", post(configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":1}}`), 400, "BadRequest", ""},
		{"other namespace", post(configMaps, named(`"name":"a","namespace":"elsewhere"`)), 400, "BadRequest", ""},
		{"unknown path", cluster.Request{Path: "/nowhere"}, 404, "", ""},
		{"unknown type", cluster.Request{Path: "/api/v1/nothings"}, 404, "NotFound", ""},
		{"unknown group", cluster.Request{Path: "/apis/nothing.example.com/v1/things"}, 404, "", ""},
		{"unknown object", cluster.Request{Path: configMaps + "/nothing"}, 404, "NotFound", ""},
		{"unknown namespace", post("/api/v1/namespaces/nothing/configmaps", named(`"name":"a"`)), 404, "NotFound", ""},
		{"wrong method on a collection", cluster.Request{Method: http.MethodPut, Path: configMaps, Body: named(`"name":"a"`)}, 405, "MethodNotAllowed", ""},
		{"wrong method on an object", post(configMaps+"/a", named(`"name":"a"`)), 405, "MethodNotAllowed", ""},
		{"unsupported media type", typed("text/plain", "hello"), 415, "UnsupportedMediaType", ""},
		{"unsupported answer", cluster.Request{Path: configMaps, Header: http.Header{"Accept": {"image/png"}}}, 406, "NotAcceptable", ""},
		{"body over 3 MiB", post(configMaps, named(`"name":"a","annotations":{"a":"`+strings.Repeat("x", 3<<20)+`"}`)), 413, "RequestEntityTooLarge", ""},
		{"invalid name", post(configMaps, named(`"name":"Not_Valid"`)), 422, "Invalid", "metadata.name"},
		{"no name", post(configMaps, named("")), 422, "Invalid", "metadata.name"},
		{"invalid generateName", post(configMaps, named(`"generateName":"Not_Valid_"`)), 422, "Invalid", "metadata.generateName"},
		{"invalid name of a namespace", post("/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"Not_Valid"}}`), 422, "Invalid", "metadata.name"},
	}
}

// refusals sends bad requests: the response to each is a Status with the reason.
func refusals(t *testing.T, c *cluster.Cluster) {
	for _, r := range refusalTable() {
		t.Run(r.name, func(t *testing.T) {
			answer := c.Ask(t, r.request)
			if answer.Code != r.code {
				t.Fatalf("got %d, want %d: %.300s", answer.Code, r.code, answer.Body)
			}
			if r.reason == "" {
				return
			}
			var status cluster.Status
			answer.Decode(t, &status)
			if status.Kind != "Status" || status.Reason != r.reason || status.Code != r.code || status.Message == "" {
				t.Errorf("want a Status with reason %s: %.300s", r.reason, answer.Body)
			}
			var fields []string
			for _, cause := range status.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if r.field != "" && !slices.Contains(fields, r.field) {
				t.Errorf("the causes name %q, want %s: %.300s", fields, r.field, answer.Body)
			}
		})
	}
}

// large creates an object that passes the limit on bodies and is above etcd's
// own: an etcd that is set to hold it gives it back whole; any other refuses it in
// so many words, and nothing is stored.
func large(t *testing.T, c *cluster.Cluster) {
	client := c.Client(t)
	path := "/apis/apps/v1/namespaces/" + newNamespace(t, client) + "/deployments"
	argument := strings.Repeat("x", 5<<19)
	answer := c.Ask(t, cluster.Request{Method: http.MethodPost, Path: path, Body: `{"apiVersion":"apps/v1","kind":"Deployment",
		"metadata":{"name":"large"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
		"spec":{"containers":[{"name":"a","image":"a","args":["` + argument + `"]}]}}}}`})
	read := c.Ask(t, cluster.Request{Path: path + "/large"})
	switch answer.Code {
	case c.Vocabulary.Behaviour.CreatedStatus:
		if read.Code != http.StatusOK || !strings.Contains(read.Body, argument) {
			t.Errorf("it was created, and reading it gives %d: %.300s", read.Code, read.Body)
		}
	case http.StatusRequestEntityTooLarge:
		var status cluster.Status
		answer.Decode(t, &status)
		if status.Message == "" || read.Code != http.StatusNotFound {
			t.Errorf("it was refused (%q), and reading it gives %d, want 404", status.Message, read.Code)
		}
	default:
		t.Errorf("got %d: %.300s; want it kept, or 413", answer.Code, answer.Body)
	}
}

// strangers try without and with wrong credentials.
func strangers(t *testing.T, c *cluster.Cluster) {
	for _, s := range []struct {
		name, token string
		code        int
	}{
		{"wrong token", "wrong", http.StatusUnauthorized},
		{"no token", "", http.StatusForbidden},
	} {
		t.Run(s.name, func(t *testing.T) {
			stranger := *c
			stranger.Token = s.token
			if answer := stranger.Ask(t, cluster.Request{Path: "/api/v1/namespaces/default/secrets"}); answer.Code != s.code {
				t.Errorf("got %d, want %d: %.300s", answer.Code, s.code, answer.Body)
			}
		})
	}
}
