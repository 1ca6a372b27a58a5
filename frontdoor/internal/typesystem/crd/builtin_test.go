package crd_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// fresh is a version that no built-in type has.
const fresh = "v9"

// imitation returns a definition in a group whose names are unused, except for one.
func (w world) imitation(t *testing.T, group, field string, name any) map[string]any {
	t.Helper()
	definition := w.widgets(t, `{type: object}`)
	set(definition, group, "spec", "group")
	set(definition, map[string]any{"plural": "inventions", "singular": "invention", "kind": "Invention", "listKind": "InventionList"}, "spec", "names")
	set(definition, name, "spec", "names", field)
	plural := definition["spec"].(map[string]any)["names"].(map[string]any)["plural"].(string)
	set(definition, plural+"."+group, "metadata", "name")
	set(definition, map[string]any{"api-approved." + w.vocabulary.Domain: "https://example.com/1"}, "metadata", "annotations")
	definition["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["name"] = fresh
	return definition
}

// forge sets the status of an established definition.
func forge(definition map[string]any) {
	names := definition["spec"].(map[string]any)["names"]
	definition["status"] = map[string]any{"acceptedNames": names, "storedVersions": []any{fresh}, "conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"}}}
}

func conditionOf(definition map[string]any, kind string) map[string]any {
	list, _ := definition["status"].(map[string]any)["conditions"].([]any)
	for _, c := range list {
		if m := c.(map[string]any); m["type"] == kind {
			return m
		}
	}
	return nil
}

// mustBeRejected checks that a definition cannot have one name of a built-in type.
func (w world) mustBeRejected(t *testing.T, group, field string, name any, reason string) {
	t.Helper()
	what := group + " " + field
	path := "spec.names." + field
	if field == "shortNames" {
		path += "[0]"
	}
	definition := w.imitation(t, group, field, name)
	w.claims(now).Establish(definition, nil)
	var status *services.Status
	if err := w.rules().Check(definition, nil); !errors.As(err, &status) || status.Code != 422 ||
		!slices.ContainsFunc(status.Details.Causes, func(c services.StatusCause) bool {
			return c.Field == path && strings.Contains(c.Message, "already in use by a built-in type")
		}) {
		t.Errorf("%s %v is not refused: %v", what, name, err)
	}
	forge(definition)
	d, err := crd.Compile(definition, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
	if err != nil || d.Established || !d.Shadows {
		t.Errorf("%s %v: a forged definition is compiled as established %t, %v", what, name, d.Established, err)
	}
	more := w.types.With(d.Surface)
	if _, ok := more.Lookup(group, fresh, d.Names.Plural); ok {
		t.Errorf("%s %v is served", what, name)
	}
	changed := map[string]any{}
	for key, value := range definition {
		changed[key] = value
	}
	w.claims(now).Establish(changed, definition)
	if c := conditionOf(changed, "NamesAccepted"); c["status"] != "False" || c["reason"] != reason || !strings.HasSuffix(c["message"].(string), "is already in use") {
		t.Errorf("%s %v: %v", what, name, c)
	}
	if c := conditionOf(changed, "Established"); c["status"] != "False" || c["reason"] != "NotAccepted" {
		t.Errorf("%s %v: %v", what, name, c)
	}
}

// TestNamesOfBuiltInTypes checks that no name of a built-in type is accepted.
func TestNamesOfBuiltInTypes(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, v)
			tried := 0
			for _, g := range w.types.Groups() {
				seen := map[string]bool{}
				for _, version := range g.Versions {
					for _, b := range version.Types {
						if g.Name == "" || seen[b.Resource] { // a definition cannot be in the core group
							continue
						}
						seen[b.Resource] = true
						tried++
						w.mustBeRejected(t, g.Name, "plural", b.Resource, "PluralConflict")
						w.mustBeRejected(t, g.Name, "singular", b.Singular, "SingularConflict")
						w.mustBeRejected(t, g.Name, "singular", b.Resource, "SingularConflict")
						w.mustBeRejected(t, g.Name, "kind", b.Kind, "KindConflict")
						w.mustBeRejected(t, g.Name, "kind", strings.ToUpper(b.Kind), "KindConflict")
						for _, short := range append(b.ShortNames, b.Resource) {
							w.mustBeRejected(t, g.Name, "shortNames", []any{short}, "ShortNamesConflict")
						}
						if b.ListKind != "" {
							w.mustBeRejected(t, g.Name, "kind", b.ListKind, "KindConflict")
							w.mustBeRejected(t, g.Name, "listKind", b.ListKind, "ListKindConflict")
						}
					}
				}
			}
			if tried < 35 {
				t.Errorf("only %d types were tried", tried)
			}
		})
	}
}

// Types that are disabled, bodies of subresources, and schemas whose names follow from
// another group and kind.
func TestUnservedNames(t *testing.T) {
	v := vocabulary.K8s()
	w := newWorld(t, v)
	w.mustBeRejected(t, v.Group("authentication."), "kind", "TokenRequest", "KindConflict")
	w.mustBeRejected(t, v.Group("authentication."), "plural", "tokenreviews", "PluralConflict")
	imitated := w.imitation(t, "apps.api.k8s.io", "kind", "Deployment")
	imitated["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["name"] = "v1"
	w.claims(now).Establish(imitated, nil)
	if c := conditionOf(imitated, "NamesAccepted"); c["status"] != "False" {
		t.Errorf("the name of a built-in schema was accepted: %v", c)
	}
	config, err := runtimeconfig.Parse(v.Group("coordination.")+"/v1=false", v.Group("coordination.")+"/v1beta1=false")
	if err != nil {
		t.Fatal(err)
	}
	if w.types, err = catalogue.New(catalogue.Options{Vocabulary: v, RuntimeConfig: config}); err != nil {
		t.Fatal(err)
	}
	w.mustBeRejected(t, v.Group("coordination."), "plural", "leases", "PluralConflict")
	w.mustBeRejected(t, v.Group("coordination."), "kind", "Lease", "KindConflict")
}

// The groups of the other vocabulary are not reserved: custom types there are stored
// separately like all others.
func TestGroupsOfTheOtherVocabulary(t *testing.T) {
	w, other := newWorld(t, vocabulary.Platform()), vocabulary.K8s()
	definition := w.imitation(t, other.Group("coordination."), "plural", "leases")
	w = w.add(t, definition)
	theirs, ok := w.types.Lookup(other.Group("coordination."), fresh, "leases")
	ours, _ := w.types.Lookup(w.vocabulary.Group("coordination."), "v1", "leases")
	if !ok || !theirs.Key.Custom || strings.HasPrefix(theirs.Key.Path(), ours.Key.Path()) || theirs.Schema() == ours.Schema() {
		t.Errorf("%+v", theirs)
	}
}

// A stored definition with a built-in name can be changed and deleted, but not request more
// of them.
func TestStoredDefinitionsOverBuiltInTypes(t *testing.T) {
	w := newWorld(t, vocabulary.Platform())
	old := w.imitation(t, w.vocabulary.Group("coordination."), "plural", "leases")
	forge(old)
	next := w.imitation(t, w.vocabulary.Group("coordination."), "plural", "leases")
	set(next, []any{"example.com/held"}, "metadata", "finalizers")
	set(next, "2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")
	forge(next)
	w.claims(now).Establish(next, old)
	if conditionOf(next, "Established")["status"] != "False" || conditionOf(next, "NamesAccepted")["status"] != "False" {
		t.Errorf("while it is deleted: %v", next["status"])
	}
	if err := w.rules().Check(next, old); err != nil {
		t.Error(err)
	}
	set(next, "Lease", "spec", "names", "kind")
	if err := w.rules().Check(next, old); err == nil || !strings.Contains(err.Error(), "spec.names.kind") || strings.Contains(err.Error(), "names.plural") {
		t.Error(err)
	}
}

// TestForgedNames compiles a definition whose status was forged by a client of an earlier
// release.
func TestForgedNames(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	definition := w.imitation(t, w.vocabulary.Group("coordination."), "kind", "Invention")
	forge(definition)
	for _, names := range []map[string]any{{"plural": "leases", "kind": "Lease"}, {"plural": "inventions", "kind": "Lease"},
		{"plural": "inventions", "kind": "Invention", "singular": "lease"}} {
		definition["status"].(map[string]any)["acceptedNames"] = names
		d, err := crd.Compile(definition, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
		if err != nil {
			t.Fatal(err)
		}
		if d.Stored.Key.Resource != "inventions" || !d.Stored.Key.Custom {
			t.Errorf("%v: objects are kept at %s", names, d.Stored.Key.Path())
		}
		more := w.types.With(d.Surface)
		leases, _ := more.Lookup(w.vocabulary.Group("coordination."), "v1", "leases")
		byKind, found := more.ByKind(w.vocabulary.Group("coordination."), fresh, "Lease")
		if _, ok := more.Lookup(w.vocabulary.Group("coordination."), fresh, "leases"); ok || found || leases.Custom {
			t.Errorf("%v: the names of a built-in type are served: %v", names, byKind)
		}
	}
}

// TestStatusIsReverted writes a forged status through the subresource.
func TestStatusIsReverted(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	old := w.widgets(t, `{type: object}`)
	w.claims(now).Establish(old, nil)
	next := w.widgets(t, `{type: object}`)
	next["status"] = map[string]any{
		"acceptedNames":  map[string]any{"plural": "leases", "kind": "Lease"},
		"storedVersions": []any{"v1"},
		"conditions": []any{
			map[string]any{"type": "Established", "status": "False"}, map[string]any{"type": "Mine", "status": "True"},
			map[string]any{"type": "Established", "status": "Unknown"}, map[string]any{"type": "Terminating", "status": "True"}},
	}
	w.claims(now.Add(time.Hour)).Establish(next, old)
	status := next["status"].(map[string]any)
	if status["acceptedNames"].(map[string]any)["plural"] != "widgets" || len(status["conditions"].([]any)) != 3 {
		t.Errorf("%v", status)
	}
	for kind, want := range map[string]string{"Established": "True", "NamesAccepted": "True", "Mine": "True"} {
		if c := conditionOf(next, kind); c["status"] != want {
			t.Errorf("%s: %v", kind, c)
		}
	}
	if conditionOf(next, "Established")["lastTransitionTime"] != conditionOf(old, "Established")["lastTransitionTime"] {
		t.Error("the time of a transition that did not happen has changed")
	}
	fresh := w.widgets(t, `{type: object}`)
	fresh["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Terminating", "status": "True"}}}
	w.claims(now).Establish(fresh, nil)
	if conditionOf(fresh, "Terminating") != nil {
		t.Error("a new definition is terminating")
	}
}
