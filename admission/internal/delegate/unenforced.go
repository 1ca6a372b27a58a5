package delegate

import (
	"context"
	"errors"
	"time"

	"github.com/portico-platform/portico/admission/internal/review"
)

const (
	// grace is how long a request waits for the answers that do not count, longer than for those that do: so much
	// that a service that answers at once is in the audit log of the request. A request does not wait for a
	// service whose last call took longer.
	grace = 250 * time.Millisecond
	// maxSpared bounds the bytes of the objects that such calls hold, which go on after their requests.
	maxSpared = 32 << 20
)

// errSpared is why a service is not asked whose answer does not count.
var errSpared = errors.New("too many calls whose answers do not count are under way")

// start begins the call of a service whose answer does not count. The end of the request does not end it.
func (p *Plugin) start(ctx context.Context, a *asked) {
	a.done = make(chan struct{})
	bytes := int64(len(a.request.Object) + len(a.request.OldObject))
	if p.spared.Add(bytes) > maxSpared {
		p.spared.Add(-bytes)
		p.fail(a, errSpared)
		close(a.done)
		return
	}
	go func() {
		defer close(a.done)
		defer p.spared.Add(-bytes)
		p.ask(context.WithoutCancel(ctx), a)
		a.tally.slow.Store(a.took > grace)
	}()
}

// collect records the answers that do not count, and that some of them are pending.
func (p *Plugin) collect(ctx context.Context, r *review.Review, unenforced []*asked) {
	if len(unenforced) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for _, a := range unenforced {
		if !a.tally.slow.Load() {
			select {
			case <-a.done:
			case <-ctx.Done():
			}
		}
		select {
		case <-a.done:
			p.record(r, a)
		default:
			a.tally.slow.Store(true)
			a.annotate(r, note{Mode: a.Spec.Mode, Verdict: "pending"})
		}
	}
}

// unasked records why a service was not asked whose answer does not count.
func (p *Plugin) unasked(r *review.Review, a *asked, err error) {
	p.fail(a, err)
	p.record(r, a)
}

// fail makes an error the outcome of a call that was not made.
func (p *Plugin) fail(a *asked, err error) {
	a.err = err
	a.tally.count(a)
	p.Registry.metrics.observe(a)
}
