package merge

import (
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestUnchangedAgrees: wherever the short way says that an apply changes nothing,
// the long way says so too; and the common cases do take the short way.
func TestUnchangedAgrees(t *testing.T) {
	b := newBench(t, vocabulary.Platform())
	ty := b.lookup(t, "apps/v1/deployments")
	const base = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, finalizers: [x/a, x/b]}, spec: {replicas: 1,
		selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: one, ports: [{containerPort: 80}]}, {name: two, args: [x]}], volumes: [{name: v, emptyDir: {}}]}}}}`
	live, err := b.apply(PatchRequest{Type: ty, Manager: "one"}, decodeYAML(t, base))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config string
		short  bool
	}{
		"the same":        {base, true},
		"other value":     {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, finalizers: [x/a, x/b]}, spec: {replicas: 2}}`, false},
		"less":            {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1}}`, false},
		"nothing":         {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`, false},
		"another order":   {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, finalizers: [x/b, x/a]}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: two, args: [x]}, {name: one, ports: [{containerPort: 80}]}], volumes: [{name: v, emptyDir: {}}]}}}}`, false},
		"default is told": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, finalizers: [x/a, x/b]}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: one, ports: [{containerPort: 80, protocol: TCP}]}, {name: two, args: [x]}], volumes: [{name: v, emptyDir: {}}]}}}}`, false},
	} {
		r := PatchRequest{Type: ty, Manager: "one", Current: live}
		config := decodeYAML(t, c.config)
		short := b.appliedAlready(r, live, config)
		if short != c.short {
			t.Errorf("%s: short way says %v", name, short)
		}
		merged, fields, err := b.applyTyped(r, live, config, mustOwners(t, live))
		if err != nil {
			t.Fatal(err)
		}
		if long := merged == nil && fields.Equals(mustOwners(t, live).fields); short && !long {
			t.Errorf("%s: short way says unchanged, long way does not", name)
		}
	}
}

func mustOwners(t *testing.T, object map[string]any) owners {
	t.Helper()
	o, err := decodeOwners(ownersOf(object))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSettle: times alone make no difference.
func TestSettle(t *testing.T) {
	live := decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t1}]}, data: {k: v}}")
	next := decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t2}]}, data: {k: v}}")
	Settle(live, next)
	if !tree.Equal(live, next) {
		t.Error("the times differ still")
	}
	next = decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t2}]}, data: {k: w}}")
	Settle(live, next)
	if tree.Equal(ownersOf(live), ownersOf(next)) {
		t.Error("a change lost its time")
	}
}
