package admission_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

// hold answers when its caller has given up.
func hold(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // until then the end of the connection is not noticed
	<-r.Context().Done()
}

// slowChecks are those that a failure policy skips when they fail, and that give no answer in time.
func slowChecks() map[string]func(*testing.T, *fake.Cluster) (services.AdmissionRequest, []string) {
	service := func(fields ...string) func(*testing.T, *fake.Cluster) (services.AdmissionRequest, []string) {
		return func(t *testing.T, c *fake.Cluster) (services.AdmissionRequest, []string) {
			d := delegated(t, &delegate{mutate: silent, validate: silent})
			d.declare(t, c, "slow", append(fields, `"failurePolicy":"Ignore"`, `"timeoutSeconds":30`)...)
			return named("c"), nil
		}
	}
	webhook := func(kind string) func(*testing.T, *fake.Cluster) (services.AdmissionRequest, []string) {
		return func(t *testing.T, c *fake.Cluster) (services.AdmissionRequest, []string) {
			s := serve(t)
			s.on("slow", "")
			configure(t, c, kind, "a", s.hook("slow", "failurePolicy: Ignore", "timeoutSeconds: 30"))
			return create("here"), nil
		}
	}
	return map[string]func(*testing.T, *fake.Cluster) (services.AdmissionRequest, []string){
		"service":            service(),
		"service, all of it": service(`"budgetPercent":100`),
		"service in batches": service(`"batch":{"maxRequests":2,"maxDelayMilliseconds":1}`),
		"service that is away": func(t *testing.T, c *fake.Cluster) (services.AdmissionRequest, []string) {
			declare(t, c, "slow", fmt.Sprintf(`"endpoint":{"addresses":[%q]}`, mute(t)), `"failurePolicy":"Ignore"`, `"timeoutSeconds":30`)
			return named("c"), nil
		},
		"service over HTTP": func(t *testing.T, c *fake.Cluster) (services.AdmissionRequest, []string) {
			end := make(chan struct{})
			endpoint, trust := overHTTP(t, func(http.ResponseWriter, string) { <-end })
			t.Cleanup(func() { close(end) })
			declare(t, c, "slow", endpoint, trust, `"protocol":"webhook"`, `"failurePolicy":"Ignore"`, `"timeoutSeconds":30`)
			return named("c"), nil
		},
		"mutating webhook":   webhook("mutating"),
		"validating webhook": webhook("validating"),
		"image policy": func(t *testing.T, _ *fake.Cluster) (services.AdmissionRequest, []string) {
			return pod("x"), servePolicy(t, hold).flags(t, ", defaultAllow: true")
		},
	}
}

// TestDeadlinesOfClientsSkipNothing: a check that the deadline of the request has cut, or whose caller has left, is
// a Timeout, also if its failure would be ignored.
func TestDeadlinesOfClientsSkipNothing(t *testing.T) {
	for name, slow := range slowChecks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var request services.AdmissionRequest
			open := func(t *testing.T) services.Admission {
				c := cluster(t)
				r, flags := slow(t, c)
				request = r
				return started(t, c, flags...)
			}
			kittest.LocalAndRemote(t, contract.Admission, open, func(t *testing.T, open func(*testing.T) services.Admission) {
				a := open(t)
				ask := func(ctx context.Context) error {
					if _, err := a.Mutate(ctx, request); err != nil {
						return err
					}
					_, err := a.Validate(ctx, request)
					return err
				}
				for _, within := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond} {
					hurried, cancel := context.WithTimeout(t.Context(), within)
					if err := ask(hurried); services.AsStatus(err) == nil || services.AsStatus(err).Code != http.StatusGatewayTimeout {
						t.Errorf("within %v: %v", within, err)
					}
					cancel()
				}
				leaving, leave := context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, leave)
				if err := ask(leaving); services.AsStatus(err) == nil || services.AsStatus(err).Code != http.StatusGatewayTimeout {
					t.Errorf("a caller that leaves: %v", err)
				}
			})
		})
	}
}

// TestBusyServicesAreNotSkipped: clients that keep a service busy do not get past it.
func TestBusyServicesAreNotSkipped(t *testing.T) {
	c := cluster(t)
	d := delegated(t, &delegate{validate: silent})
	d.declare(t, c, "busy", `"phase":"Validate"`, `"failurePolicy":"Ignore"`, `"timeoutSeconds":30`)
	a := started(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make(chan error)
	const more = 300 // than calls of one service may be under way
	for range more {
		go func() {
			_, err := a.Validate(ctx, named("c"))
			results <- err
		}()
	}
	for n := range more {
		if n == more-256 { // the others have been refused
			cancel()
		}
		if s := services.AsStatus(<-results); s == nil || s.Code != http.StatusTooManyRequests && s.Code != http.StatusGatewayTimeout {
			t.Fatalf("%v", s)
		}
	}
}

// TestUnenforcedServicesRefuseNothing: what keeps the answer of a service from being known, or asked for, is
// recorded if the answer does not count, and is no error.
func TestUnenforcedServicesRefuseNothing(t *testing.T) {
	for mode, fields := range map[string][]string{"shadow": {`"mode":"Shadow"`}, "canary": {`"mode":"Canary"`, `"canaryPercent":0`}} {
		for name, x := range faults() {
			t.Run(mode+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := cluster(t)
				declare(t, c, "broken", append(append(x.of(t), `"timeoutSeconds":30`), fields...)...)
				a := started(t, c)
				began := time.Now()
				got, err := a.Mutate(t.Context(), named("c"))
				note := got.AuditAnnotations["mutate.extension.portico.dev/broken"]
				if err != nil || got.Object != nil || !strings.Contains(note, `"verdict":"failed"`) && !strings.Contains(note, `"verdict":"pending"`) {
					t.Errorf("mutating: %+v, %v", got.AuditAnnotations, err)
				}
				if _, err := a.Validate(t.Context(), named("c")); err != nil {
					t.Errorf("validating: %v", err)
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
		t.Run(mode+"/not asked", func(t *testing.T) {
			t.Parallel()
			unenforcedUnasked(t, fields)
		})
	}
}

// unenforcedUnasked tries everything that keeps a service from being asked.
func unenforcedUnasked(t *testing.T, fields []string) {
	d := delegated(t, &delegate{})
	for name, x := range map[string]struct {
		fields []string
		with   func(*services.AdmissionRequest)
		says   string
	}{
		"conditions": {[]string{`"matchConditions":[{"name":"a","expression":"object.nothing == 1"}]`}, nil, "no such key"},
		"bypass":     {nil, func(r *services.AdmissionRequest) { r.Bypass = []string{"one"} }, "cannot bypass"},
		"conversion": {[]string{`"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["v1"],"resources":["things"]}]`}, nil, "webhook is away"},
		"conversion that hangs": {[]string{`"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["v1"],"resources":["things"]}]`},
			func(r *services.AdmissionRequest) { r.Converter = hanging{} }, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(t *testing.T) services.Admission {
				c := cluster(t)
				d.declare(t, c, "one", append(append([]string{`"phase":"Validate"`}, fields...), x.fields...)...)
				return started(t, c)
			}
			kittest.LocalAndRemote(t, contract.Admission, open, func(t *testing.T, open func(*testing.T) services.Admission) {
				r := named("c")
				if strings.HasPrefix(name, "conversion") {
					r = shared(&versioned{err: errors.New("the webhook is away")})
				}
				if x.with != nil {
					x.with(&r)
				}
				got, err := open(t).Validate(t.Context(), r)
				note := got.AuditAnnotations["validate.extension.portico.dev/one"]
				if err != nil || !strings.Contains(note, `"enforced":false,"verdict":"failed"`) || !strings.Contains(note, x.says) {
					t.Errorf("%v, %v", got.AuditAnnotations, err)
				}
			})
		})
	}
	if len(d.requests()) > 0 {
		t.Error("the service was asked")
	}
}

// hanging is a converter whose webhook does not answer.
type hanging struct{ services.Converter }

func (hanging) Convert(ctx context.Context, _ []byte, _ services.ServedType) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestNobodyWaitsForSlowShadows: a request waits for a service whose answer does not count only a moment, and not
// at all once it is known to be slow. Its answer is counted nevertheless.
func TestNobodyWaitsForSlowShadows(t *testing.T) {
	c := cluster(t)
	release := make(chan struct{})
	late := func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
		<-release
		return refusing(t.Context(), services.AdmissionRequest{})
	}
	d := delegated(t, &delegate{mutate: late, validate: late})
	d.declare(t, c, "late", `"mode":"Shadow"`, `"timeoutSeconds":30`, fmt.Sprintf(`"trust":{"serverName":"delegate","caBundle":%q}`, base64.StdEncoding.EncodeToString(d.ca)))
	a := started(t, c)
	began := time.Now()
	for range 20 {
		got, err := a.Mutate(t.Context(), named("c"))
		if err != nil || !strings.Contains(got.AuditAnnotations["mutate.extension.portico.dev/late"], `"verdict":"pending"`) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if took := time.Since(began); took > 4*time.Second { // it would be 5 with a wait for each
		t.Errorf("20 requests took %v", took)
	}
	close(release)
	until(t, "its answers are recorded again", func() bool {
		got, err := a.Validate(t.Context(), named("c"))
		return err == nil && strings.Contains(got.AuditAnnotations["validate.extension.portico.dev/late"], `"verdict":"denied"`)
	})
	until(t, "each request is reviewed by the service, too", func() bool { return len(d.requests()) >= 21 })
}
