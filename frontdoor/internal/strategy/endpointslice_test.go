package strategy

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDropTopology: a deprecated topology is not written, and not lost by a write of
// something else.
func TestDropTopology(t *testing.T) {
	const with, without = `{endpoints: [{addresses: [a], deprecatedTopology: {x: y}}]}`, `{endpoints: [{addresses: [a]}]}`
	for name, c := range map[string]struct{ old, next, want string }{
		"created":   {`{}`, with, without},
		"added":     {without, with, without},
		"unchanged": {with, with, with},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) (m map[string]any) {
				if err := yaml.Unmarshal([]byte(text), &m); err != nil {
					t.Fatal(err)
				}
				return m
			}
			next := parse(c.next)
			dropTopology(next, parse(c.old))
			if want := parse(c.want); !reflect.DeepEqual(next, want) {
				t.Errorf("got %v, want %v", next, want)
			}
		})
	}
}
