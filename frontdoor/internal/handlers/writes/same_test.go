package writes

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// TestSameChangesNothing: an object that is written as it is keeps its version, through
// each of its paths.
func TestSameChangesNothing(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	for path, body := range map[string]string{
		"/api/v1/namespaces/default/services":         `{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`,
		"/api/v1/namespaces/default/pods":             `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		"/apis/apps/v1/namespaces/default/daemonsets": strings.Replace(webDeployment, `"replicas":2,`, "", 1),
	} {
		made := c.must("POST", path, body)
		version := made["metadata"].(map[string]any)["resourceVersion"]
		same, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"", "/status"} {
			again := c.must("PUT", path+"/a"+part, string(same))
			if got := again["metadata"].(map[string]any)["resourceVersion"]; got != version {
				t.Errorf("%s: version %v after the same again, want %v", path+"/a"+part, got, version)
			}
		}
	}
}

// TestSameManifestLater: what a client, the preparation of a DaemonSet and admission change and change back does
// not count, however late it is.
func TestSameManifestLater(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.engine = handlertest.EngineOf(t, release.V136)
	c.handlers.Admission = relabels{}
	now := time.Now()
	c.engine.Merge.Now = func() time.Time { return now }
	for path, body := range map[string]string{
		"/apis/apps/v1/namespaces/default/daemonsets": strings.Replace(webDeployment, `"replicas":2,`, "", 1),
		"/api/v1/namespaces/default/configmaps":       `{"metadata":{"name":"a","labels":{"x":"y"}},"data":{"a":"b"}}`,
	} {
		made := c.must("POST", path, body)
		now = now.Add(time.Minute)
		again := c.must("PUT", path+"/a", body)
		if !reflect.DeepEqual(again, made) {
			t.Errorf("%s:\n%v, want\n%v", path, again, made)
		}
		now = now.Add(time.Minute)
		changed := c.must("PUT", path+"/a", strings.Replace(body, `"metadata":{`, `"metadata":{"annotations":{"new":"one"},`, 1))
		if text := fmt.Sprint(changed); !strings.Contains(text, now.UTC().Format(time.RFC3339)) {
			t.Errorf("%s: no new time in %s", path, text)
		}
	}
}

// relabels is an admission that changes a label.
type relabels struct{ handlertest.AdmitAll }

func (relabels) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	object := r.Tree
	if object == nil {
		if err := json.Unmarshal(r.Object, &object); err != nil {
			return services.AdmissionResponse{}, err
		}
	}
	changed, _ := tree.Copy(object).(map[string]any)
	tree.Object(tree.Object(changed, "metadata"), "labels")["x"] = "changed"
	raw, err := tree.Encode(changed)
	return services.AdmissionResponse{Object: raw}, err
}
