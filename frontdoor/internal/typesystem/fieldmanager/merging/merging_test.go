package merging_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/merging"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestMerge merges configurations of policies by the list types of pods.
func TestMerge(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform(), Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	e := fieldmanager.New(fieldmanager.Options{Types: types, Vocabulary: vocabulary.Platform()})
	pod, _ := types.Lookup("", "v1", "pods")
	const live = `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"x":"y"},"managedFields":[{"manager":"m"}],"name":"a"},` +
		`"spec":{"containers":[{"args":["a"],"image":"i","name":"one"},{"image":"j","name":"two"}]}}`
	for name, x := range map[string]struct{ config, want string }{
		"a label":        {`{"metadata":{"labels":{"a":"b"}}}`, `"labels":{"a":"b","x":"y"},"managedFields":[{"manager":"m"}]`},
		"an item":        {`{"spec":{"containers":[{"name":"two","image":"k"},{"name":"three","image":"l"}]}}`, `"containers":[{"args":["a"],"image":"i","name":"one"},{"image":"k","name":"two"},{"image":"l","name":"three"}]`},
		"a number":       {`{"spec":{"terminationGracePeriodSeconds":5}}`, `"terminationGracePeriodSeconds":5`},
		"an atomic list": {`{"spec":{"containers":[{"name":"one","args":["b"]}]}}`, `invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args`},
		"an atomic map":  {`{"spec":{"nodeSelector":{"a":"b"}}}`, `may not mutate atomic arrays, maps or structs: .spec.nodeSelector`},
		"unknown":        {`{"spec":{"none":1}}`, `failed to convert patch object to typed object: .spec.none: field not declared in schema`},
		"another type":   {`{"spec":{"containers":"a"}}`, `.spec.containers: expected list`},
	} {
		object, err := tree.Decode([]byte(live))
		if err != nil {
			t.Fatal(err)
		}
		config, err := tree.Decode([]byte(x.config))
		if err != nil {
			t.Fatal(err)
		}
		config["apiVersion"], config["kind"] = "v1", "Pod"
		merged, err := merging.Merge(e, pod, object, config)
		got, _ := tree.Encode(merged)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), x.want) {
			t.Errorf("%s: %s", name, got)
		}
		if after, _ := tree.Encode(object); string(after) != live {
			t.Errorf("%s: the object was modified: %s", name, after)
		}
	}
}
