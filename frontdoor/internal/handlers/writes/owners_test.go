package writes

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

// admitAdding is an admission that sets a field of every pod.
type admitAdding struct{ handlertest.AdmitAll }

func (admitAdding) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	var object map[string]any
	if err := json.Unmarshal(r.Object, &object); err != nil {
		return services.AdmissionResponse{}, err
	}
	object["spec"].(map[string]any)["priority"] = int64(0)
	raw, err := json.Marshal(object)
	return services.AdmissionResponse{Object: raw}, err
}

// TestAddedFieldsAreNobodys: the client's field manager owns the fields that it sent and
// their defaults. Fields that admission and the service add have no field manager.
func TestAddedFieldsAreNobodys(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	c.handlers.Admission = admitAdding{}
	const pods, jobs = "/api/v1/namespaces/default/pods", "/apis/batch/v1/namespaces/default/jobs"
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	job := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
	for name, write := range map[string]struct{ method, path, body, added, sent string }{
		"create by admission": {http.MethodPost, pods, pod, "priority", "dnsPolicy"},
		"create by service":   {http.MethodPost, jobs, job, "selector", "backoffLimit"},
	} {
		t.Run(name, func(t *testing.T) {
			object := c.must(write.method, write.path, write.body)
			owned := ownedSpec(object)
			if _, set := object["spec"].(map[string]any)[write.added]; !set || owned["f:"+write.added] != nil {
				t.Errorf("%s is set: %v, owned: %v", write.added, set, owned)
			}
			if owned["f:"+write.sent] == nil {
				t.Errorf("%s is not owned: %v", write.sent, owned)
			}
		})
	}
	object := c.must(http.MethodPatch, pods+"/p", `{"spec":{"activeDeadlineSeconds":5}}`)
	if owned := ownedSpec(object); owned["f:priority"] != nil || owned["f:activeDeadlineSeconds"] == nil {
		t.Errorf("patched: %v", owned)
	}
}

// ownedSpec returns what the first manager owns below spec.
func ownedSpec(object map[string]any) map[string]any {
	entry := object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
	spec, _ := entry["fieldsV1"].(map[string]any)["f:spec"].(map[string]any)
	return spec
}
