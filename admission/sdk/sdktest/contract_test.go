package sdktest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/admission/sdk/sdktest"
	"github.com/portico-platform/portico/services"
)

const settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1"}}`

// lying is an implementation that changes objects while validating, and whose refusals have
// no reason.
type lying struct{}

func (lying) Mutate(_ context.Context, r sdk.Request) (services.AdmissionResponse, error) {
	if r.Operation == "" {
		return services.AdmissionResponse{}, &services.Status{Code: 403}
	}
	return services.AdmissionResponse{}, nil
}

func (lying) Validate(_ context.Context, r sdk.Request) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{Object: r.Object}, nil
}

// mixing answers the requests of a batch in their order, whatever their uids are, and always
// admits the first one.
type mixing struct{ services.Admission }

func (m mixing) MutateBatch(ctx context.Context, requests []sdk.Request) (results []services.AdmissionResult, err error) {
	for i, r := range requests {
		result := services.AdmissionResult{UID: r.UID}
		if i > 0 {
			result.Response, result.Err = m.Mutate(ctx, r)
		}
		results = append(results, result)
	}
	return results, nil
}

func (m mixing) ValidateBatch(ctx context.Context, requests []sdk.Request) ([]services.AdmissionResult, error) {
	return m.MutateBatch(ctx, requests)
}

// bad returns services that violate the contract, by the check that finds it.
func bad() map[string]func() services.Admission {
	of := func(mutate, validate sdk.Handler) func() services.Admission {
		return func() services.Admission {
			return sdk.Admission(sdk.Service{Name: "bad", Mutate: mutate, Validate: validate}, sdk.DefaultOptions())
		}
	}
	return map[string]func() services.Admission{
		"mutating twice changes nothing more": of(func(_ context.Context, r *sdk.Review) error {
			if r.Object == nil {
				return nil
			}
			return r.Set(string(r.Object), "data", "before")
		}, nil),
		"mutating keeps the identity of the object": of(func(_ context.Context, r *sdk.Review) error {
			if r.Resource != "configmaps" || r.Object == nil {
				return nil
			}
			return r.Set("other", "metadata", "name")
		}, nil),
		"missing objects do no harm": of(nil, func(_ context.Context, r *sdk.Review) error {
			_ = r.Object[0]
			return nil
		}),
		"malformed objects do no harm": of(nil, func(_ context.Context, r *sdk.Review) error {
			var object map[string]any
			if r.Object == nil || r.Resource != "configmaps" || r.Decode(&object) != nil {
				return nil
			}
			_ = object["metadata"].(map[string]any)
			return nil
		}),
		"unknown kinds are admitted": of(nil, func(_ context.Context, r *sdk.Review) error {
			if r.Resource != "configmaps" {
				return r.Forbid("only ConfigMaps")
			}
			return nil
		}),
		"a dry run is decided alike": of(nil, func(_ context.Context, r *sdk.Review) error {
			if r.DryRun {
				return r.Forbid("not now")
			}
			return nil
		}),
		"every operation is decided": of(nil, func(_ context.Context, r *sdk.Review) error {
			var object map[string]any
			return r.Decode(&object) // a delete has no new object
		}),
		"examples are decided as expected": of(nil, func(_ context.Context, r *sdk.Review) error {
			return r.Forbid("nothing passes")
		}),
		"a batch is decided as its requests alone": func() services.Admission {
			label := func(_ context.Context, r *sdk.Review) error {
				if r.Resource != "configmaps" || r.Operation != sdk.Create {
					return nil
				}
				return r.Set("yes", "metadata", "labels", "seen")
			}
			return mixing{sdk.Admission(sdk.Service{Name: "bad", Mutate: label}, sdk.DefaultOptions())}
		},
		"validating changes nothing": func() services.Admission { return lying{} },
	}
}

// TestTheContractFindsBadServices runs this test again in a process of its own for each bad
// service, because a failure of the contract is a failure of its test.
func TestTheContractFindsBadServices(t *testing.T) {
	if name := os.Getenv("BAD_SERVICE"); name != "" {
		sdktest.Protocol(t, bad()[name](), sdktest.Example{Admitted: []sdk.Request{sdktest.Create(settings)}})
		return
	}
	for name := range bad() {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheContractFindsBadServices$")
			command.Env = append(os.Environ(), "BAD_SERVICE="+name)
			out, err := command.CombinedOutput()
			failure := "--- FAIL: TestTheContractFindsBadServices/" + strings.ReplaceAll(name, " ", "_")
			if err == nil || !strings.Contains(string(out), failure) {
				t.Errorf("not found: %v\n%s", err, out)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	policy := `{apiVersion: policy/v1, kind: PodSecurityPolicy, metadata: {name: p, namespace: team}}`
	r := sdktest.Update(policy, policy)
	if r.Group != "policy" || r.Version != "v1" || r.Resource != "podsecuritypolicies" || r.Kind != "PodSecurityPolicy" || r.Namespace != "team" || r.Name != "p" || r.OldObject == nil || r.Object == nil {
		t.Errorf("%+v", r)
	}
	if a, b := sdktest.Create(settings), sdktest.Delete(settings); a.UID == b.UID || a.Resource != "configmaps" || b.Object != nil || b.OldObject == nil {
		t.Errorf("%+v, %+v", a, b)
	}
	c := sdktest.Connect(settings, "exec", map[string]any{"command": []string{"ls"}})
	if c.Operation != sdk.Connect || c.Subresource != "exec" || string(c.Object) != `{"command":["ls"]}` {
		t.Errorf("%+v", c)
	}
	for kind, want := range map[string]string{"Ingress": "ingresses", "Gateway": "gateways", "NetworkPolicy": "networkpolicies", "Pod": "pods", "Mutex": "mutexes", "Branch": "branches"} {
		if got := sdktest.Create("{apiVersion: v1, kind: " + kind + "}").Resource; got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
