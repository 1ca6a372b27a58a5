package backends

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/monotonic"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// A type is copied when it is read often: its reads within interestPeriod have
	// interestEnough points, of which a list counts listPoints and a get one.
	interestPeriod = time.Minute
	interestEnough = 16
	listPoints     = 4
	// unusedFor is how long a copy is kept without being read, and tooLargeFor how long a
	// type that did not fit is not tried again.
	unusedFor   = 10 * time.Minute
	tooLargeFor = 10 * time.Minute
	// boundEvery is the interval at which the sizes of copies are bounded.
	boundEvery = 10 * time.Second
	// objectOverhead is the memory of an object in addition to its JSON, in bytes.
	objectOverhead = 512
)

// copies are the copies of the types that are read often.
type copies struct {
	source changes.Source
	store  services.Store
	log    *slog.Logger
	limit  int64 // bytes of objects in all copies

	mu       sync.Mutex
	ctx      context.Context // of all copies; nil before Run
	of       map[resource.GroupResource]*typeCopy
	points   map[resource.GroupResource]int
	tooLarge map[resource.GroupResource]time.Time
	// epochs are those in which copied types were read last.
	epochs map[resource.GroupResource]string
}

// typeCopy is the copy of one type.
type typeCopy struct {
	mirror *changes.Mirror[*services.Object]
	stop   context.CancelFunc
	// bytes are those of the objects; during the first load, of those loaded so far.
	bytes atomic.Int64
	// incomplete is set when the objects do not fit.
	incomplete atomic.Bool
	// used and verified are when it was read last, and when it was last known to be the newest
	// state, in Unix nanoseconds.
	used, verified atomic.Int64
	written        written
}

// find returns the copy of a type that is read, which counts for the given points; nil if it
// cannot be used.
func (c *copies) find(gr resource.GroupResource, points int) *typeCopy {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.of[gr]
	if found == nil {
		if c.ctx == nil {
			return nil
		}
		if c.points[gr] += points; c.points[gr] < interestEnough || time.Since(c.tooLarge[gr]) < tooLargeFor {
			return nil
		}
		found = c.begin(gr)
	}
	found.used.Store(monotonic.Now())
	return found.complete()
}

// ready returns the copy of a type that is written, nil if there is none.
func (c *copies) ready(gr resource.GroupResource) *typeCopy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[gr].complete()
}

// complete returns the copy if it holds all objects, else nil.
func (t *typeCopy) complete() *typeCopy {
	if t == nil {
		return nil
	}
	select {
	case <-t.mirror.Ready():
	default:
		return nil
	}
	if t.incomplete.Load() {
		return nil
	}
	return t
}

// begin starts the copy of a type.
func (c *copies) begin(gr resource.GroupResource) *typeCopy {
	made := &typeCopy{}
	ctx, stop := context.WithCancel(c.ctx)
	made.stop = stop
	made.mirror = changes.NewMirror(changes.MirrorConfig[*services.Object]{
		Source: c.source, Store: c.store, GroupResource: gr, Log: c.log,
		Decode: func(o services.Object) (*services.Object, error) {
			select {
			case <-made.mirror.Ready(): // bound counts them
			default:
				if made.bytes.Add(sizeOf(&o)) > c.limit {
					made.incomplete.Store(true)
					stop()
					return nil, changes.ErrSkip
				}
			}
			return &o, nil
		},
	})
	c.of[gr] = made
	go func() {
		_ = made.mirror.Run(ctx) // returns nil
		c.drop(gr, made)
	}()
	return made
}

func sizeOf(o *services.Object) int64 { return int64(len(o.JSON)) + objectOverhead }

// drop forgets a copy. One that has ended by itself does not fit.
func (c *copies) drop(gr resource.GroupResource, ended *typeCopy) {
	ended.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[gr] == ended {
		delete(c.of, gr)
		c.tooLarge[gr] = time.Now()
	}
}

// forget drops copies that are no longer to be read.
func (c *copies) forget(which func(resource.GroupResource, *typeCopy) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gr, one := range c.of {
		if which(gr, one) {
			delete(c.of, gr)
			delete(c.points, gr)
			one.stop()
		}
	}
}

// entered drops the copy of a type when the history of its etcd has broken, and then returns true:
// the copy is not its present state.
func (c *copies) entered(gr resource.GroupResource, epoch string) bool {
	c.mu.Lock()
	before := c.epochs[gr]
	c.epochs[gr] = epoch
	c.mu.Unlock()
	if before == "" || before == epoch {
		return false
	}
	c.forget(func(of resource.GroupResource, _ *typeCopy) bool { return of == gr })
	return true
}

// run bounds the copies until ctx ends.
func (c *copies) run(ctx context.Context) {
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	sizes := time.NewTicker(boundEvery)
	defer sizes.Stop()
	periods := time.NewTicker(interestPeriod)
	defer periods.Stop()
	for {
		select {
		case <-sizes.C:
			c.bound()
		case <-periods.C:
			c.mu.Lock()
			clear(c.points)
			c.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (c *copies) all() map[resource.GroupResource]*typeCopy {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[resource.GroupResource]*typeCopy, len(c.of))
	for gr, one := range c.of {
		all[gr] = one
	}
	return all
}

// bound drops unused copies, and the least recently read ones while all take too much.
func (c *copies) bound() {
	now := time.Now()
	c.forget(func(_ resource.GroupResource, one *typeCopy) bool {
		return monotonic.Since(one.used.Load()) > unusedFor
	})
	for {
		var sum int64
		var oldest *typeCopy
		for _, one := range c.all() {
			sum += one.size()
			if oldest == nil || one.used.Load() < oldest.used.Load() {
				oldest = one
			}
		}
		if sum <= c.limit {
			return
		}
		c.forget(func(gr resource.GroupResource, one *typeCopy) bool {
			if one == oldest {
				c.tooLarge[gr] = now
			}
			return one == oldest
		})
	}
}

// held returns the bytes of all copies, as far as they have been counted.
func (c *copies) held() (sum float64) {
	for _, one := range c.all() {
		sum += float64(one.bytes.Load())
	}
	return sum
}

// size counts the bytes of a copy.
func (t *typeCopy) size() (sum int64) {
	select {
	case <-t.mirror.Ready():
	default:
		return t.bytes.Load()
	}
	for _, o := range t.mirror.List("") {
		sum += sizeOf(o)
	}
	t.bytes.Store(sum)
	return sum
}
