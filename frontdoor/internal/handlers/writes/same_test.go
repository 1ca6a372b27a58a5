package writes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/kittest/fake"
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
