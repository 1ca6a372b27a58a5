package writes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},` +
	`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`

// TestHalvesOfNobody: fields that the service sets in a new object have no field manager,
// and the status exists before it is written.
func TestHalvesOfNobody(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	made := c.must("POST", deployments, deployment)
	if status, ok := made["status"].(map[string]any); !ok || len(status) != 0 {
		t.Errorf("the status of a new deployment is %v", made["status"])
	}
	entry := made["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
	owned, err := json.Marshal(entry["fieldsV1"])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"f:status"`, `"f:spec":{".":`, `"f:strategy":{".":`, `"f:template":{".":`} {
		if strings.Contains(string(owned), part) {
			t.Errorf("somebody owns %s: %s", part, owned)
		}
	}
	if !strings.Contains(string(owned), `"f:rollingUpdate":{".":{}`) {
		t.Errorf("nobody owns what the client left to the service: %s", owned)
	}
	c.refused(services.ReasonInvalid, "POST", deployments, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"none"}}`)
}

// TestScaleIsPrepared: a Scale is validated as strictly as other objects.
func TestScaleIsPrepared(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.must("POST", deployments, deployment)
	scale := func(spec string) string {
		return `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":` + spec + `}`
	}
	c.refused(services.ReasonBadRequest, "PUT", deployments+"/web/scale", scale(`{"replicas":"3"}`))
	c.refused(services.ReasonBadRequest, "PATCH", deployments+"/web/scale", `{"spec":{"replicas":"3"}}`)
	c.refused(services.ReasonInvalid, "PUT", deployments+"/web/scale", scale(`{"replicas":-1}`))
	for body, want := range map[string]any{`{"replicas":3}`: 3.0, `{"replicas":null}`: nil, `{}`: nil} {
		shown := c.must("PUT", deployments+"/web/scale", scale(body))
		if got := shown["spec"].(map[string]any)["replicas"]; got != want {
			t.Errorf("%s shows %v replicas, want %v", body, got, want)
		}
	}
}
