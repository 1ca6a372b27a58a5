package writes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
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
	for _, meta := range []string{"", `"metadata":{},`, `"metadata":{"name":"other"},`} {
		c.refused(services.ReasonBadRequest, "PUT", deployments+"/web/scale", `{"apiVersion":"autoscaling/v1","kind":"Scale",`+meta+`"spec":{"replicas":0}}`)
	}
	for body, want := range map[string]any{`{"replicas":3}`: 3.0, `{"replicas":null}`: nil, `{}`: nil} {
		shown := c.must("PUT", deployments+"/web/scale", scale(body))
		if got := shown["spec"].(map[string]any)["replicas"]; got != want {
			t.Errorf("%s shows %v replicas, want %v", body, got, want)
		}
	}
}

// TestScaleIsApplied: who applies a Scale owns the replicas, as in Kubernetes since release 1.22.
func TestScaleIsApplied(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	if c.engine, err = typesystem.New(types, typesystem.Options{Vocabulary: vocabulary.K8s()}); err != nil {
		t.Fatal(err)
	}
	c.must("POST", deployments+"?fieldManager=author", strings.Replace(deployment, `"spec":{`, `"spec":{"replicas":1,`, 1))
	scale := func(n int) string {
		return fmt.Sprintf("{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web}, spec: {replicas: %d}}", n)
	}
	at := deployments + "/web/scale?fieldManager="
	if _, err := c.do("APPLY", at+"one", scale(5)); !services.IsReason(err, services.ReasonConflict) || !strings.Contains(err.Error(), `conflict with "author"`) {
		t.Errorf("other replicas than the author's: %v", err)
	}
	c.must("APPLY", at+"one&force=true", scale(5))
	c.must("APPLY", at+"one", scale(6))
	c.refused(services.ReasonConflict, "APPLY", at+"two", scale(7))
	c.must("APPLY", at+"two", scale(6))
	owners := map[string]any{}
	object := c.must("PATCH", deployments+"/web", `{}`)
	for _, entry := range tree.Objects(object, "metadata", "managedFields") {
		if _, owned := tree.Child(entry, "fieldsV1", "f:spec")["f:replicas"]; owned {
			owners[tree.Text(entry, "manager")] = tree.Text(entry, "operation") + " " + tree.Text(entry, "subresource")
		}
	}
	if want := map[string]any{"one": "Apply scale", "two": "Apply scale"}; !tree.Equal(owners, want) || tree.Value(object, "spec", "replicas") != 6.0 {
		t.Errorf("%v replicas of %v", tree.Value(object, "spec", "replicas"), owners)
	}
}
