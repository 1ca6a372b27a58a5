package admission_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/rpc"
)

// batching is an admission service that accepts batches.
type batching struct {
	*delegate
	mu    sync.Mutex
	sizes []int
}

func (b *batching) each(ctx context.Context, all []services.AdmissionRequest, ask review) (results []services.AdmissionResult, err error) {
	b.mu.Lock()
	b.sizes = append(b.sizes, len(all))
	b.mu.Unlock()
	for _, r := range all {
		response, err := ask(ctx, r)
		results = append(results, services.AdmissionResult{UID: r.UID, Response: response, Err: err})
	}
	return results, nil
}

func (b *batching) MutateBatch(ctx context.Context, all []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	return b.each(ctx, all, b.Mutate)
}

func (b *batching) ValidateBatch(ctx context.Context, all []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	return b.each(ctx, all, b.Validate)
}

// TestBatches: a service that accepts batches gets concurrent requests in one call, and each
// request gets the answer to it.
func TestBatches(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	b := &batching{delegate: &delegate{mutate: changing("a", "1")}}
	b.validate = func(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
		if r.Name == "first" {
			held <- struct{}{}
			<-hold
		}
		if strings.HasPrefix(r.Name, "bad") {
			return refusing(ctx, r)
		}
		return services.AdmissionResponse{Warnings: []string{r.Name}}, nil
	}
	delegated(t, b.delegate, func(d *delegate) { rpc.RegisterAdmissionBatch(d.server, b) })
	c := cluster(t)
	b.declare(t, c, "batching", `"batch":{"maxRequests":8,"maxDelayMilliseconds":100}`)
	a := started(t, c)
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := a.Validate(t.Context(), named("first")); err != nil {
			t.Error(err)
		}
	})
	<-held
	const requests = 32
	for i := range requests {
		name := fmt.Sprintf("good-%d", i)
		if i%2 == 1 {
			name = fmt.Sprintf("bad-%d", i)
		}
		all.Go(func() {
			got, err := a.Validate(t.Context(), named(name))
			if strings.HasPrefix(name, "bad") != services.IsReason(err, services.ReasonForbidden) || err != nil && !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil && (len(got.Warnings) != 1 || got.Warnings[0] != name) {
				t.Errorf("%s: warnings %q", name, got.Warnings)
			}
			changed, err := a.Mutate(t.Context(), named(name))
			if err != nil || !strings.Contains(string(changed.Object), fmt.Sprintf(`"name":%q`, name)) || !strings.Contains(string(changed.Object), `"a":"1`) {
				t.Errorf("%s: %s, %v", name, changed.Object, err)
			}
		})
	}
	until(t, "all others are answered while one is not", func() bool {
		b.delegate.mu.Lock()
		defer b.delegate.mu.Unlock()
		return len(b.asked) > requests
	})
	close(hold)
	all.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	total := 0
	for _, n := range b.sizes {
		if total += n; n < 2 || n > 8 {
			t.Errorf("a batch of %d", n)
		}
	}
	if total < requests/2 {
		t.Errorf("batches of %v: too few of %d requests", b.sizes, requests)
	}
	t.Logf("batches of %v", b.sizes)
}
