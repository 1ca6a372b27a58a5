package discovery

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestDropTopology: a deprecated topology cannot be written, and is kept if the endpoints
// are unchanged.
func TestDropTopology(t *testing.T) {
	const with, without = `{endpoints: [{addresses: [a], deprecatedTopology: {x: y}}]}`, `{endpoints: [{addresses: [a]}]}`
	for name, c := range map[string]struct{ old, next, want string }{
		"created":   {`{}`, with, without},
		"added":     {without, with, without},
		"unchanged": {with, with, with},
		"node stays": {`{endpoints: [{deprecatedTopology: {platform.io/hostname: node}}]}`,
			`{endpoints: [{zone: z, deprecatedTopology: {platform.io/hostname: node}}, {deprecatedTopology: {platform.io/hostname: other}}]}`,
			`{endpoints: [{zone: z, nodeName: node}, {}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) (m map[string]any) {
				if err := yaml.Unmarshal([]byte(text), &m); err != nil {
					t.Fatal(err)
				}
				return m
			}
			next := parse(c.next)
			dropTopology(kinds.Write{Version: "v1", Vocabulary: vocabulary.Platform()}, next, parse(c.old))
			if want := parse(c.want); !reflect.DeepEqual(next, want) {
				t.Errorf("got %v, want %v", next, want)
			}
		})
	}
}
