package devices_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/portico-platform/portico/admission/internal/devices"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// allowing allows one verb on one name of a subresource: "driver gpu.example.com associated-node:update".
type allowing struct {
	services.Authz
	what string
}

func (a allowing) Authorize(_ context.Context, r services.Attributes) (services.Decision, error) {
	return services.Decision{Allowed: r.Subresource+" "+r.Name+" "+r.Verb == a.what}, nil
}

// TestWhoChangesTheStatusOfAClaim: binding a claim and reporting its devices each take a permission of
// their own, and a refusal says which one is missing.
func TestWhoChangesTheStatusOfAClaim(t *testing.T) {
	const (
		free      = `{}`
		allocated = `{"allocation":{"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-1"]}]}]}}}`
	)
	reported := strings.TrimSuffix(allocated, "}") + `,"devices":[{"driver":"gpu.example.com","pool":"p","device":"d"}]}`
	const (
		driver   = `changing status.devices requires resource="resourceclaims/driver", verb=`
		noDriver = `: resourceclaims.resource.k8s.io "gpu.example.com" is forbidden: User "system:serviceaccount:drivers:gpu" cannot `
		resource = ` resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "work"`
	)
	for _, c := range []struct {
		name, node, allowed, before, after string
		field                              string   // of the refusal; "" if there is none
		says                               []string // parts of its message
	}{
		{"nothing changes", "", "", reported, reported, "", nil},
		{"may bind", "", "binding  update", free, allocated, "", nil},
		{"may bind with a patch", "", "binding  patch", free, allocated, "", nil},
		{"may not bind", "", "driver gpu.example.com arbitrary-node:update", free, allocated, "status.allocation",
			[]string{`requires resource="resourceclaims/binding"`, `cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope`}},
		{"may report everywhere", "", "driver gpu.example.com arbitrary-node:update", allocated, reported, "", nil},
		{"may report on its node", "node-1", "driver gpu.example.com associated-node:update", allocated, reported, "", nil},
		{"on another node", "node-2", "driver gpu.example.com associated-node:update", allocated, reported, "status.devices", []string{driver, noDriver + "arbitrary-node:update" + resource}},
		{"for another driver", "", "driver nic.example.com arbitrary-node:update", allocated, reported, "status.devices", []string{driver, noDriver + "arbitrary-node:update" + resource}},
		{"may nothing on its node", "node-1", "", allocated, reported, "status.devices", []string{driver, noDriver + "associated-node:update" + resource}},
		{"may not remove a report", "", "", reported, allocated, "status.devices", []string{driver}},
	} {
		t.Run(c.name, func(t *testing.T) {
			object := func(status string) json.RawMessage {
				return json.RawMessage(`{"metadata":{"namespace":"work","name":"claim"},"status":` + status + `}`)
			}
			user := services.UserInfo{Name: "system:serviceaccount:drivers:gpu"}
			if c.node != "" {
				user.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {c.node}}
			}
			r := services.AdmissionRequest{User: user, Operation: services.OperationUpdate, Object: object(c.after), OldObject: object(c.before)}
			r.Group, r.Version, r.Resource, r.Subresource, r.Kind, r.Namespace, r.Name = "resource.k8s.io", "v1", "resourceclaims", "status", "ResourceClaim", "work", "claim"
			p := devices.Plugin{Authz: allowing{what: c.allowed}, Vocabulary: vocabulary.K8s(), Status: true}
			err := p.Validate(t.Context(), review.New(r))
			if c.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			status := services.AsStatus(err)
			if !services.IsReason(err, services.ReasonInvalid) || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != c.field {
				t.Fatalf("%+v, want Invalid about %s", err, c.field)
			}
			for _, part := range c.says {
				if !strings.Contains(status.Message, part) {
					t.Errorf("%q is not in %q", part, status.Message)
				}
			}
		})
	}
}
