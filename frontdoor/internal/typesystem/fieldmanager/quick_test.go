package fieldmanager

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestQuickAgrees compares the fast path with the library for many random writes. The fast
// path must cover most of them.
func TestQuickAgrees(t *testing.T) {
	b := newBench(t, vocabulary.Platform())
	content, err := os.ReadFile("testdata/bench/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		seed, resource string
		through        []string
	}{
		"deployment": {string(content), "apps/v1/deployments", []string{"", "", "status"}},
		"service": {`{apiVersion: v1, kind: Service, metadata: {name: a, finalizers: [x/a, x/b], labels: {a: b},
			ownerReferences: [{uid: u, name: owner, kind: K, apiVersion: v1}]},
			spec: {selector: {a: b}, ports: [{port: 80, name: one}, {port: 80, protocol: UDP, name: two}], externalIPs: [1.2.3.4]},
			status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}, conditions: [{type: A, status: "True"}, {type: B, status: "False"}]}}`, "/v1/services", []string{"", "status"}},
		"config map": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b, c: d}}`, "/v1/configmaps", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rivals{t: t, bench: b, random: rand.New(rand.NewPCG(4, uint64(len(name)))), seed: decodeYAML(t, c.seed)} //nolint:gosec // reproducible
			ty := b.lookup(t, c.resource)
			for range 20 {
				var live map[string]any
				for range 12 {
					through := ""
					if live != nil {
						through = c.through[r.random.IntN(len(c.through))]
					}
					if r.random.IntN(2) == 0 {
						live = r.change(Change{Type: ty, Live: live, Manager: r.who(), Subresource: through})
					} else {
						live = r.apply(PatchRequest{Type: ty, Current: live, Manager: r.who(), Subresource: through, MediaType: MediaTypeApply, Force: r.random.IntN(3) == 0})
					}
				}
			}
			t.Logf("quick: %d of %d", r.quick, r.all)
			if r.quick*3 < r.all {
				t.Errorf("only %d of %d writes are quick", r.quick, r.all)
			}
		})
	}
}

// TestUsualFields creates objects with the same fields again and again, whose managedFields are
// made once, and between them some that differ a little.
func TestUsualFields(t *testing.T) {
	b := newBench(t, vocabulary.Platform())
	ty := b.lookup(t, "/v1/services")
	const same = `[{port: 1, name: a}, {port: 2, name: b}, {port: 3, name: c}]`
	for i, ports := range []string{same, same, same, `[{port: 3, name: c}, {port: 2, name: b}, {port: 1, name: a}]`, `[{port: 1, name: a}, {port: 1, name: b}, {port: 2, name: c}]`,
		`[{port: 1, name: a}, {port: 2, name: b}]`, `[{port: 1, name: a}, {port: 2, name: b}, {port: 4, name: c}]`, `[{port: 1, name: a}, {port: 2, name: b}, {port: 3, targetPort: 1}]`,
		`[{port: 1, name: a}, {port: 2, name: b}, {port: 3, name: [x]}]`, `[{port: 1, name: a}, {port: 2, name: b}, {port: 3, name: null}]`, `[]`, same} {
		service := decodeYAML(t, `{apiVersion: v1, kind: Service, metadata: {name: a, labels: {app: web}, finalizers: [x/a]}, spec: {selector: {a: b}, ports: `+ports+`}}`)
		c := Change{Type: ty, New: service, Manager: "m"}
		list, ok := b.trackQuickly(c, nil, nil)
		err := b.trackFully(c, nil, nil)
		unlike := ports != same && (i == 4 || i == 8)
		if ok == unlike || ok && (err != nil || !tree.Equal(list, ownersOf(service))) {
			t.Errorf("%s: quick is %v: %s; full: %s, %v", ports, ok, dump(t, list), dump(t, ownersOf(service)), err)
		}
		got, err := tree.Append(nil, list)
		if want, _ := json.Marshal(append([]any{}, list...)); err != nil || string(got) != string(want) {
			t.Errorf("%s is encoded as %s, %v", want, got, err)
		}
	}
}

// rivals holds the two implementations.
type rivals struct {
	t *testing.T
	*bench
	random     *rand.Rand
	seed       map[string]any
	quick, all int
}

func (r *rivals) who() string { return fmt.Sprint("manager-", r.random.IntN(3)) }

// change makes one write with both and returns the next object.
func (r *rivals) change(c Change) map[string]any {
	r.t.Helper()
	if c.Live == nil {
		c.New = r.grow(r.seed)
	} else {
		c.New = r.vary(c.Live)
	}
	r.all++
	r.now = r.now.Add(time.Minute)
	given := ownersOf(c.New)
	list, ok := r.trackQuickly(c, ownersOf(c.Live), given)
	err := r.trackFully(c, ownersOf(c.Live), given)
	if ok {
		r.quick++
		quick := copyOf(c.New)
		setOwners(quick, list)
		if err != nil || !tree.Equal(quick, c.New) {
			r.t.Fatalf("from %s\nto %s\nquick %s\nfull  %s %v", dump(r.t, c.Live), dump(r.t, withoutOwners(c.New)), dump(r.t, list), dump(r.t, ownersOf(c.New)), err)
		}
	}
	return copyOf(c.New)
}

// apply applies one configuration with both and returns the next object.
func (r *rivals) apply(p PatchRequest) map[string]any {
	r.t.Helper()
	live, config := p.Current, r.shrink(withoutOwners(r.grow(r.seed)))
	if p.Current == nil {
		live = emptyOf(p.Type)
	} else if r.random.IntN(2) == 0 {
		config = r.vary(withoutOwners(p.Current))
	}
	r.all++
	r.now = r.now.Add(time.Minute)
	before := copyOf(live)
	quick, ok := r.applyQuickly(p, live, copyOf(config))
	if !tree.Equal(before, live) {
		r.t.Fatal("the current object was modified")
	}
	full, err := r.applyFully(p, live, config)
	if ok {
		r.quick++
		if err != nil || !tree.Equal(quick, full) {
			r.t.Fatalf("live %s\nconfig %s\nquick %s\nfull %s %v", dump(r.t, live), dump(r.t, config), dump(r.t, quick), dump(r.t, full), err)
		}
	}
	if err != nil {
		return p.Current
	}
	return full
}

// grow returns the object with some parts omitted.
func (r *rivals) grow(object map[string]any) map[string]any {
	return r.vary(object)
}

// shrink drops whole fields of the object.
func (r *rivals) shrink(object map[string]any) map[string]any {
	for _, name := range []string{"spec", "status", "data"} {
		if m, ok := object[name].(map[string]any); ok {
			for _, field := range slices.Sorted(maps.Keys(m)) {
				if r.random.IntN(3) == 0 {
					delete(m, field)
				}
			}
		}
	}
	return object
}

// vary changes a few random values.
func (r *rivals) vary(object map[string]any) map[string]any {
	next := copyOf(object)
	owners := ownersOf(next)
	setOwners(next, nil)
	for range r.random.IntN(4) {
		for _, name := range slices.Sorted(maps.Keys(next)) {
			if below := next[name]; name != "apiVersion" && name != "kind" && r.random.IntN(2) == 0 {
				next[name] = r.value(below, 1)
			}
		}
	}
	setOwners(next, owners)
	return next
}

func (r *rivals) value(value any, depth int) any {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below := v[name]
			switch r.random.IntN(6 + 2*depth) {
			case 0:
				if depth > 1 {
					delete(v, name)
				}
			case 1, 2, 3, 4:
				v[name] = r.value(below, depth+1)
			}
		}
	case []any:
		for i := range v {
			if r.random.IntN(2) == 0 {
				v[i] = r.value(v[i], depth+1)
			}
		}
		switch n := r.random.IntN(16); {
		case n < 3:
			r.random.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		case n < 6 && len(v) > 0:
			return append(v[:0:0], v[1:]...)
		case n < 9 && len(v) > 0:
			another := tree.Copy(v[r.random.IntN(len(v))])
			if m, ok := another.(map[string]any); ok {
				for _, name := range slices.Sorted(maps.Keys(m)) {
					m[name] = r.scalar(m[name])
				}
			} else {
				another = r.scalar(another)
			}
			return append(v, another)
		case n == 9:
			return []any{}
		}
	default:
		return r.scalar(value)
	}
	return value
}

func (r *rivals) scalar(value any) any {
	switch value.(type) {
	case string:
		return fmt.Sprint("value-", r.random.IntN(5))
	case int64:
		return int64(r.random.IntN(5))
	case bool:
		return r.random.IntN(2) == 0
	}
	return value
}
