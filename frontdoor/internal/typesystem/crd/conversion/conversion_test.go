package conversion_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conversion"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

// answering returns a webhook that accepts these versions of ConversionReview. Its server
// responds with the result of reply.
func answering(t *testing.T, versions []string, reply func(review map[string]any) any) *conversion.Webhook {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.Method != http.MethodPost || r.URL.Query().Get("timeout") != "30s" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		if answer := reply(review); answer != nil {
			_ = json.NewEncoder(w).Encode(answer)
		} else {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return conversion.New(webhook.Config{URL: &server.URL, CABundle: authority}, versions, clients(), vocabulary.K8s())
}

func clients() *webhook.Clients { return webhook.NewClients(webhook.Settings{}) }

// converted returns a correct response, modified by change.
func converted(change func(review, response, first map[string]any)) func(map[string]any) any {
	return func(review map[string]any) any {
		request := review["request"].(map[string]any)
		var objects []any
		for _, o := range request["objects"].([]any) {
			next := maps.Clone(o.(map[string]any))
			next["apiVersion"] = request["desiredAPIVersion"]
			next["spec"] = map[string]any{"size": 3, "from": o.(map[string]any)["apiVersion"]}
			meta := maps.Clone(next["metadata"].(map[string]any))
			meta["labels"], meta["finalizers"] = map[string]any{"new": "label"}, []any{"not/heard"}
			next["metadata"] = meta
			objects = append(objects, next)
		}
		response := map[string]any{"uid": request["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
		if change != nil {
			change(review, response, objects[0].(map[string]any))
		}
		return map[string]any{"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
	}
}

func widget(version, name string) map[string]any {
	return map[string]any{"apiVersion": "example.com/" + version, "kind": "Widget",
		"metadata": map[string]any{"name": name, "uid": "u-" + name, "annotations": map[string]any{"old": "a"}}, "spec": map[string]any{}}
}

func TestConvert(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		w := answering(t, []string{"v9", version}, converted(nil))
		objects := []map[string]any{widget("v1", "a"), widget("v2", "b"), widget("v1", "c")}
		found, err := w.Convert(context.Background(), objects, "example.com/v2")
		if err != nil || len(found) != 3 {
			t.Fatal(found, err)
		}
		for i, name := range []string{"a", "b", "c"} {
			meta := found[i]["metadata"].(map[string]any)
			if found[i]["apiVersion"] != "example.com/v2" || meta["name"] != name {
				t.Errorf("object %d: %v", i, found[i])
			}
			if i == 1 {
				continue // in that version already: not sent
			}
			if found[i]["spec"].(map[string]any)["size"] != int64(3) || meta["labels"] == nil || meta["annotations"] == nil || meta["finalizers"] != nil {
				t.Errorf("object %d: %v", i, found[i])
			}
		}
		if objects[0]["apiVersion"] != "example.com/v1" || objects[0]["spec"].(map[string]any)["size"] != nil {
			t.Errorf("the object given was changed: %v", objects[0])
		}
	}
}

// TestLargeAnswers: an object may grow when it is converted, and not without end; what is too large is not decoded.
func TestLargeAnswers(t *testing.T) {
	grown := func(spec any) error {
		w := answering(t, []string{"v1"}, converted(func(_, _, first map[string]any) { first["spec"] = spec }))
		_, err := w.Convert(context.Background(), []map[string]any{widget("v1", "a")}, "example.com/v2")
		return err
	}
	many := make([]any, 6_000_000)
	for i := range many {
		many[i] = 1
	}
	for what, spec := range map[string]any{"text": strings.Repeat("x", 2<<20), "values": many[:300_000], "both": many} {
		if err := grown(spec); err == nil || !strings.Contains(err.Error(), "the response of the conversion webhook: more than") {
			t.Errorf("%s: %.200v", what, err)
		}
	}
	if err := grown(map[string]any{"text": strings.Repeat("x", 900<<10), "values": many[:5000]}); err != nil {
		t.Errorf("an object that grows: %v", err)
	}
}

func TestAnswersThatAreNotBelieved(t *testing.T) {
	spoil := func(name string, value any) func(_, _, first map[string]any) {
		return func(_, _, first map[string]any) {
			if rest, ok := strings.CutPrefix(name, "metadata."); ok {
				first["metadata"].(map[string]any)[rest] = value
			} else {
				first[name] = value
			}
		}
	}
	const prefix = "conversion webhook for example.com/v1, Kind=Widget "
	for want, reply := range map[string]func(map[string]any) any{
		`failed: an error on the server ("500 Internal Server Error") has prevented the request from succeeding`: func(map[string]any) any { return nil },
		"failed: no response provided": func(r map[string]any) any {
			return map[string]any{"apiVersion": r["apiVersion"], "kind": r["kind"]}
		},
		"failed: not today": converted(func(_, response, _ map[string]any) {
			response["result"] = map[string]any{"status": "Failure", "message": "not today"}
		}),
		"failed: response.result.status was '', not 'Success'": converted(func(_, response, _ map[string]any) { delete(response, "result") }),
		"failed: expected response.uid=":                       converted(func(_, response, _ map[string]any) { response["uid"] = "other" }),
		"failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v2, Kind=ConversionReview": converted(
			func(review, _, _ map[string]any) { review["apiVersion"] = "apiextensions.k8s.io/v2" }),
		"returned 0 objects, expected 1": converted(func(_, response, _ map[string]any) { response["convertedObjects"] = []any{} }),
		"returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)":     converted(spoil("apiVersion", "example.com/v3")),
		"returned invalid object at index 0: invalid kind (expected Widget, received Gadget)":                             converted(spoil("kind", "Gadget")),
		"returned invalid object at index 0: must have the same name: a != b":                                             converted(spoil("metadata.name", "b")),
		"returned invalid object at index 0: must have the same UID: u-a != b":                                            converted(spoil("metadata.uid", "b")),
		"returned invalid metadata in object at index 0: invalid metadata.annotations of type string in converted object": converted(spoil("metadata.annotations", "x")),
		"returned invalid metadata in object at index 0: metadata.labels: Invalid value: \"a b\"":                         converted(spoil("metadata.labels", map[string]any{"a b": "c"})),
	} {
		_, err := answering(t, []string{"v1"}, reply).Convert(context.Background(), []map[string]any{widget("v1", "a")}, "example.com/v2")
		status := services.AsStatus(err)
		if want = prefix + want; status == nil || status.Code != 500 || !strings.HasPrefix(status.Message, want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestPlacesThatCannotBeAsked(t *testing.T) {
	nowhere := conversion.New(webhook.Config{}, []string{"v1"}, clients(), vocabulary.K8s())
	strange := conversion.New(webhook.Config{}, []string{"v7"}, clients(), vocabulary.K8s())
	for want, w := range map[string]*conversion.Webhook{"neither url nor service": nowhere, "neither v1 nor v1beta1": strange} {
		if _, err := w.Convert(context.Background(), []map[string]any{widget("v1", "a")}, "example.com/v2"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if same, err := w.Convert(context.Background(), []map[string]any{widget("v2", "a")}, "example.com/v2"); err != nil || len(same) != 1 {
			t.Errorf("nothing to ask, and yet: %v", err)
		}
	}
}
