package feed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// randomly returns random selections and changes over few names and values, so that many
// selections overlap and many changes enter or leave them.
type randomly struct{ *rand.Rand }

func (r randomly) value() string { return string("abcd"[r.IntN(4)]) }

func (r randomly) selection(t *testing.T) Selection {
	var labels, fields []string
	for range r.IntN(4) {
		labels = append(labels, fmt.Sprintf([]string{"l%d=%s", "l%d!=%s", "l%d in (a,%s)", "l%d notin (b,%s)", "l%d%.0s", "!l%d%.0s", "l%d in (a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,%s)"}[r.IntN(7)],
			r.IntN(4), r.value()))
	}
	for range r.IntN(2) {
		fields = append(fields, []string{"metadata.name", "metadata.namespace", "spec.x", "spec.y"}[r.IntN(4)]+[]string{"=", "!="}[r.IntN(2)]+[]string{"", r.value()}[r.IntN(2)])
	}
	s := Selection{Selector: selector(t, strings.Join(labels, ","), strings.Join(fields, ","))}
	switch r.IntN(6) {
	case 0, 1:
		s.Namespace = r.value()
	case 2:
		s.Namespaces = &[][]string{{}, {"a"}, {"a", "c"}, {"b", "c", "d"}}[r.IntN(4)]
	}
	return s
}

func (r randomly) properties() (labels, fields map[string]string) {
	labels, fields = map[string]string{}, map[string]string{}
	for range r.IntN(5) {
		labels[fmt.Sprint("l", r.IntN(4))] = r.value()
	}
	for range r.IntN(3) {
		fields["spec."+string("xy"[r.IntN(2)])] = r.value()
	}
	return labels, fields
}

func (r randomly) change(revision int64) services.Change {
	c := services.Change{Type: []services.ChangeType{services.Added, services.Modified, services.Modified, services.Deleted}[r.IntN(4)],
		Object: services.Object{Revision: revision, Key: resource.Key{GroupResource: pods, Namespace: []string{"", r.value()}[r.IntN(2)], Name: r.value()}}}
	c.Object.Labels, c.Object.Fields = r.properties()
	switch {
	case c.Type != services.Added && r.IntN(4) == 0:
		c.OldLabels, c.OldFields = c.Object.Labels, c.Object.Fields
	case c.Type != services.Added:
		c.OldLabels, c.OldFields = r.properties()
	}
	return c
}

// TestAChangeWakesExactlyWhoSelectsIt compares the index with the evaluation of every
// selection for every change, while watchers come and go.
func TestAChangeWakesExactlyWhoSelectsIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := randomly{rand.New(rand.NewPCG(seed, 0))}
	x := newIndex()
	open := map[*Watcher]bool{}
	woken := 0
	for revision := int64(1); revision <= 500; revision++ {
		for len(open) < 200 {
			w := &Watcher{selection: r.selection(t), wake: make(chan struct{}, 1)}
			x.add(w)
			if w.pending.Swap(0) == 0 {
				t.Fatal("a new watcher is not woken")
			}
			open[w] = true
		}
		c := r.change(revision)
		x.wake(&c)
		for w := range open {
			selected := w.selection.eventType(&c) != 0
			if got := w.pending.Swap(0) == revision; got != selected {
				t.Fatalf("woken %v, selected %v: %q %q by %+v", got, selected, w.selection.Namespace, w.selection.Selector.Text(), c)
			}
			if selected {
				woken++
			}
			if r.IntN(100) == 0 {
				x.remove(w)
				x.remove(w) // has no effect
				delete(open, w)
			}
		}
	}
	if woken < 1000 {
		t.Errorf("only %d were woken: the test shows little", woken)
	}
	for w := range open {
		x.remove(w)
	}
	if len(x.groups)+len(x.files)+len(x.fields)+len(x.labels) > 0 {
		t.Errorf("the index of no watchers holds %v", x)
	}
}

// TestHostileSelectorsCostLittle opens watches with large selectors, all different, which
// match nothing.
func TestHostileSelectorsCostLittle(t *testing.T) {
	x := newIndex()
	const watchers = 500
	for i := range watchers {
		var terms []string
		for k := range 30 {
			terms = append(terms, fmt.Sprintf("app in (web,v%d),l%d!=x,m%d in (%s)", i, k, k+i, strings.Repeat("a,", 30)+"b"))
		}
		x.add(&Watcher{selection: Selection{Selector: selector(t, strings.Join(terms, ","), "")}, wake: make(chan struct{}, 1)})
	}
	filed := 0
	for _, groups := range x.files {
		filed += len(groups)
	}
	if filed > watchers*filings {
		t.Errorf("%d watchers are filed %d times", watchers, filed)
	}
	c := change(1, "a", "x")
	c.Object.Labels = map[string]string{"app": "web", "m1": "a"}
	visited := 0
	x.candidates(&c, func(*group) { visited++ })
	if visited > watchers/20 {
		t.Errorf("a change was compared with %d of %d selectors", visited, watchers)
	}
}

func TestWatchersOfOneSelectionAreEvaluatedOnce(t *testing.T) {
	x := newIndex()
	for range 100 {
		x.add(&Watcher{selection: Selection{Selector: selector(t, "app=web", "")}, wake: make(chan struct{}, 1)})
	}
	c := change(1, "a", "x")
	c.Object.Labels = map[string]string{"app": "web"}
	visited := 0
	if x.candidates(&c, func(*group) { visited++ }); visited != 1 {
		t.Errorf("evaluated %d times", visited)
	}
}

// FuzzIndex compares what the index wakes with the evaluation of the selection.
func FuzzIndex(f *testing.F) {
	f.Add("app in (web,api)", "", "a", "app", "web", "db")
	f.Add("app notin (web),tier", "metadata.name=x", "", "tier", "", "front")
	f.Add("!app,n>3", "metadata.namespace!=a,spec.nodeName=", "b", "n", "4", "2")
	f.Fuzz(func(t *testing.T, labels, fields, namespace, name, value, before string) {
		s, err := resource.ParseSelector(labels, fields)
		if err != nil {
			return
		}
		x := newIndex()
		w := &Watcher{selection: Selection{Selector: s, Namespace: namespace}, wake: make(chan struct{}, 1)}
		x.add(w)
		w.pending.Store(0)
		for _, kind := range []services.ChangeType{services.Added, services.Modified, services.Deleted} {
			c := change(7, namespace, name)
			c.Type, c.Object.Labels, c.Object.Fields = kind, map[string]string{name: value}, map[string]string{name: value}
			if kind != services.Added {
				c.OldLabels, c.OldFields = map[string]string{name: before}, map[string]string{name: before}
			}
			x.wake(&c)
			if got, want := w.pending.Swap(0) != 0, s.Empty() || w.selection.eventType(&c) != 0; got != want {
				t.Errorf("%s: woken %v, want %v", kind, got, want)
			}
		}
	})
}
