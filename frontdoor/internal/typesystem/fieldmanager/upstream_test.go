package fieldmanager

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestUpstreamAgrees compares the slow path with the field manager of Kubernetes for many
// random writes: the object, its managedFields and the conflicts. TestQuickAgrees compares
// the fast path with the slow one.
func TestUpstreamAgrees(t *testing.T) {
	b := newBench(t, vocabulary.K8s())
	b.now = time.Now()
	content, err := os.ReadFile("testdata/bench/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ seed, resource string }{
		"deployment": {string(content), "apps/v1/deployments"},
		"config map": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: b}}, data: {a: b, c: d}}`, "/v1/configmaps"},
		"service account": {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, finalizers: [x/a, x/b],
			ownerReferences: [{uid: u, name: owner, kind: K, apiVersion: v1}, {uid: v, name: owner, kind: K, apiVersion: v1}]},
			secrets: [{name: a}, {name: b}], imagePullSecrets: [{name: c}]}`, "/v1/serviceaccounts"},
	} {
		t.Run(name, func(t *testing.T) {
			u := upstream{rivals: rivals{t: t, bench: b, seed: decodeYAML(t, c.seed),
				random: rand.New(rand.NewPCG(7, uint64(len(name))))}} //nolint:gosec // reproducible
			ty := b.lookup(t, c.resource)
			for range 25 {
				var live map[string]any
				for range 12 {
					through := ""
					if live != nil && ty.Subresources["status"] != nil && u.random.IntN(3) == 0 {
						through = "status"
					}
					if u.random.IntN(2) == 0 {
						live = u.change(Change{Type: ty, Live: live, Manager: u.who(), Subresource: through})
					} else {
						live = u.apply(PatchRequest{Type: ty, Current: live, Manager: u.who(), Subresource: through, MediaType: MediaTypeApply, Force: u.random.IntN(3) == 0})
					}
				}
			}
			t.Logf("%d writes, of which %d are refused", u.all, u.refused)
			if u.refused == 0 || u.refused*2 > u.all {
				t.Errorf("%d of %d writes are refused: the trial is lopsided", u.refused, u.all)
			}
		})
	}
}

// upstream compares the slow path with the field manager of Kubernetes.
type upstream struct {
	rivals
	refused int
}

// manager returns the field manager for a type and subresource.
func (u *upstream) manager(ty *catalogue.Type, subresource string) *managedfields.FieldManager {
	u.t.Helper()
	converter := u.Types.Converter()
	kind := schema.FromAPIVersionAndKind(ty.APIVersion(), ty.Kind)
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if left := untouched(ty, subresource); left != nil {
		reset[fieldpath.APIVersion(ty.APIVersion())] = fieldpath.NewExcludeSetFilter(setOf(left))
	}
	m, err := managedfields.NewDefaultFieldManager(converter, oneVersion{}, oneVersion{}, oneVersion{}, kind, kind.GroupVersion(), subresource, reset)
	if err != nil {
		u.t.Fatal(err)
	}
	return m
}

// change makes one write with both and returns the next object.
func (u *upstream) change(c Change) map[string]any {
	u.t.Helper()
	from := c.Live
	if from == nil {
		from, c.New = u.of(c.Type).blank, u.vary(u.seed)
	} else {
		c.New = u.vary(c.Live)
	}
	u.all++
	theirs, refused := u.manager(c.Type, c.Subresource).Update(object(from), object(c.New), c.Manager)
	err := u.trackFully(c, ownersOf(c.Live), ownersOf(c.New))
	if (err == nil) != (refused == nil) {
		u.t.Fatalf("from %s\nto %s\nfull %v\nupstream %v", dump(u.t, c.Live), dump(u.t, c.New), err, refused)
	}
	if err != nil { // the object does not match its schema
		u.refused++
		return c.Live
	}
	u.compare(c.Live, c.New, theirs)
	return copyOf(c.New)
}

// apply applies one configuration with both and returns the next object.
func (u *upstream) apply(p PatchRequest) map[string]any {
	u.t.Helper()
	live, config := p.Current, u.shrink(withoutOwners(u.vary(u.seed)))
	if live == nil {
		live = emptyOf(p.Type)
	} else if u.random.IntN(2) == 0 {
		config = u.vary(withoutOwners(p.Current))
	}
	u.all++
	theirs, refused := u.manager(p.Type, p.Subresource).Apply(object(live), object(config), p.Manager, p.Force)
	ours, err := u.applyFully(p, live, copyOf(config))
	if (err == nil) != (refused == nil) || !slices.Equal(conflictsOf(err), theirConflicts(refused)) {
		u.t.Fatalf("live %s\nconfig %s\nfull %v %q\nupstream %v %q", dump(u.t, live), dump(u.t, config), err, conflictsOf(err), refused, theirConflicts(refused))
	}
	if err != nil {
		u.refused++
		return p.Current
	}
	u.compare(live, ours, theirs)
	return ours
}

// compare fails unless both results have the same object and managedFields.
func (u *upstream) compare(live, ours map[string]any, theirs runtime.Object) {
	u.t.Helper()
	made := plain(u.t, theirs)
	if !tree.Equal(withoutOwners(ours), withoutOwners(made)) || !tree.Equal(ordered(ownersOf(ours)), ordered(ownersOf(made))) {
		u.t.Fatalf("from %s\nfull     %s\nupstream %s", dump(u.t, live), dump(u.t, ours), dump(u.t, made))
	}
}

// ordered returns entries without times, by manager: the two writes have different times.
func ordered(list []any) any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = timeless(list[i])
	}
	slices.SortFunc(out, func(a, b any) int {
		x, y := entryIdentity(a.(map[string]any)), entryIdentity(b.(map[string]any))
		return cmp.Or(cmp.Compare(x.operation, y.operation), cmp.Compare(x.name, y.name), cmp.Compare(x.subresource, y.subresource))
	})
	return out
}

func object(content map[string]any) runtime.Object {
	return &unstructured.Unstructured{Object: copyOf(content)}
}

func plain(t *testing.T, o runtime.Object) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// conflictsOf returns the fields of a conflict, sorted.
func conflictsOf(err error) (fields []string) {
	var s *services.Status
	if errors.As(err, &s) && s.Details != nil {
		for _, c := range s.Details.Causes {
			fields = append(fields, c.Field)
		}
	}
	slices.Sort(fields)
	return fields
}

func theirConflicts(err error) (fields []string) {
	var s apierrors.APIStatus
	if errors.As(err, &s) && s.Status().Details != nil {
		for _, c := range s.Status().Details.Causes {
			fields = append(fields, c.Field)
		}
	}
	slices.Sort(fields)
	return fields
}

// oneVersion creates, converts and defaults objects of types with one version.
type oneVersion struct{}

func (oneVersion) Convert(_, _, _ any) error { return errors.New("there is one version") }

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("there are no labels")
}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
