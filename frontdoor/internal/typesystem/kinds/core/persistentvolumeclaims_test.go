package core

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"spec": m}
}

// TestDataSource: supported and stored data sources are kept.
func TestDataSource(t *testing.T) {
	w := kinds.Write{Vocabulary: vocabulary.Platform()}
	const unknown = `{dataSource: {apiGroup: example.com, kind: Tape, name: a}}`
	for _, c := range []struct{ name, made, old, want string }{
		{"a claim", `{dataSource: {kind: PersistentVolumeClaim, name: a}}`, "", `{dataSource: {kind: PersistentVolumeClaim, name: a}}`},
		{"a snapshot", `{dataSource: {apiGroup: snapshot.storage.platform.io, kind: VolumeSnapshot, name: a}}`, "",
			`{dataSource: {apiGroup: snapshot.storage.platform.io, kind: VolumeSnapshot, name: a}}`},
		{"a claim of another group", `{dataSource: {apiGroup: example.com, kind: PersistentVolumeClaim, name: a}}`, "", `{}`},
		{"something else", unknown, "", `{}`},
		{"something else that is there", unknown, unknown, unknown},
		{"nothing", `{}`, "", `{}`},
	} {
		made, want := spec(t, c.made), spec(t, c.want)
		dropDataSource(w, made, spec(t, c.old))
		if !reflect.DeepEqual(made, want) {
			t.Errorf("%s: got %v, want %v", c.name, made["spec"], want["spec"])
		}
	}
}

// TestExpansion: the status of a claim reports the expansion of its storage only.
func TestExpansion(t *testing.T) {
	status := `{allocatedResourceStatuses: {storage: NodeResizePending, cpu: NodeResizePending, example.com/x: Perhaps}, allocatedResources: {storage: "-1", kubernetes.io/x: "1", a b: "1"}}`
	c := rules.Check{Vocabulary: vocabulary.K8s(), Subresource: "status"}
	expansion(&c, map[string]any{"status": spec(t, status)["spec"]}, nil, nil)
	got := ""
	for _, cause := range c.Causes() {
		got += cause.Field + ": " + cause.Message[:strings.Index(cause.Message, ":")] + "\n"
	}
	const want = "status.allocatedResourceStatuses: Unsupported value\nstatus.allocatedResourceStatuses: Unsupported value\n" +
		"status.allocatedResources: Invalid value\nstatus.allocatedResources: Unsupported value\nstatus.allocatedResources[storage]: Invalid value\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestLaterDataSource: a claim has both fields for what its volume is filled from, and only one
// for what dataSource does not support.
func TestLaterDataSource(t *testing.T) {
	w := kinds.Write{Vocabulary: vocabulary.Platform(), Release: release.V136}
	for _, c := range []struct{ name, made, old, want string }{
		{"a claim", `{dataSource: {kind: PersistentVolumeClaim, name: a}}`, "", `{dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: a}}`},
		{"something else", `{dataSource: {kind: Pod, name: a}}`, "", `{}`},
		{"something else that is there", `{dataSource: {kind: Pod, name: a}}`, `{dataSource: {kind: Pod, name: a}}`, `{dataSource: {kind: Pod, name: a}, dataSourceRef: {kind: Pod, name: a}}`},
		{"a reference to something else", `{dataSource: {kind: Pod, name: b}, dataSourceRef: {apiGroup: a.b, kind: Tape, name: a}}`, "", `{dataSource: {kind: Pod, name: b}, dataSourceRef: {apiGroup: a.b, kind: Tape, name: a}}`},
		{"of another namespace", `{dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: b}}`, "", `{}`},
		{"of another namespace that is there", `{dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: b}}`, `{dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: b}}`,
			`{dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: b}}`},
	} {
		made, old, want := spec(t, c.made), spec(t, c.old), spec(t, c.want)
		for _, prepare := range []kinds.PrepareFunc{dropDataSource, sameDataSources} {
			prepare(w, made, old)
		}
		if !reflect.DeepEqual(made, want) {
			t.Errorf("%s: got %v, want %v", c.name, made["spec"], want["spec"])
		}
	}
}
