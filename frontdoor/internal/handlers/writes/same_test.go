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

// TestSameManifestLater: an object stays as it is if admission, or the preparation of a DaemonSet, undoes what
// the manifest of a client changes, also if the client sends it again minutes later.
func TestSameManifestLater(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
		c.engine = handlertest.EngineOf(t, r)
		c.handlers.Admission = relabels{}
		now := time.Now()
		c.engine.Merge.Now = func() time.Time { return now }
		later := func(method, path, body string) map[string]any {
			now = now.Add(time.Minute)
			return c.must(method, path, body)
		}
		for path, body := range map[string]string{
			"/apis/apps/v1/namespaces/default/daemonsets": strings.Replace(webDeployment, `"replicas":2,`, "", 1),
			"/api/v1/namespaces/default/configmaps":       `{"metadata":{"name":"a","labels":{"x":"y"}},"data":{"a":"b"}}`,
		} {
			same := func(what string, got, want map[string]any) {
				t.Helper()
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s, %s:\n%v, want\n%v", r, path, what, got, want)
				}
			}
			made := later("POST", path+"?fieldManager=one", body)
			same("again", later("PUT", path+"/a?fieldManager=one", body), made)
			same("dry-run", later("PUT", path+"/a?fieldManager=one&dryRun=All", body), made)
			changed := later("PUT", path+"/a?fieldManager=one", strings.Replace(body, `"metadata":{`, `"metadata":{"annotations":{"new":"one"},`, 1))
			if text := fmt.Sprint(changed); !strings.Contains(text, now.UTC().Format(time.RFC3339)) {
				t.Errorf("%s, %s: no new time in %s", r, path, text)
			}
			// The entry of the first manager precedes that of the second one. Since release 1.25 it comes last after
			// any write of its manager, which is a change.
			const undone = `{"metadata":{"labels":{"x":"y"}}}`
			later("PATCH", path+"/a?fieldManager=one", undone)
			two := later("PATCH", path+"/a?fieldManager=two", `{"metadata":{"annotations":{"new":"two"}}}`)
			first := later("PATCH", path+"/a?fieldManager=one", undone)
			if kept := reflect.DeepEqual(first, two); kept != (r == release.V121) {
				t.Errorf("%s, %s: after a write of another manager the object stays as it is: %v", r, path, kept)
			}
			same("the last entry", later("PATCH", path+"/a?fieldManager=one", undone), first)
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
