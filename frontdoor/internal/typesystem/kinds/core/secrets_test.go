package core

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

func TestDataFromText(t *testing.T) {
	for name, c := range map[string]struct{ given, want string }{
		"text wins":   {`{data: {a: eA==, b: eA==}, stringData: {a: hi}}`, `{data: {a: aGk=, b: eA==}}`},
		"only text":   {`{stringData: {a: hi}}`, `{data: {a: aGk=}}`},
		"null":        {`{stringData: null}`, `{}`},
		"empty":       {`{stringData: {}}`, `{}`},
		"no text":     {`{stringData: {a: 1}}`, `{stringData: {a: 1}}`},
		"no object":   {`{stringData: x}`, `{stringData: x}`},
		"without any": {`{data: {a: eA==}}`, `{data: {a: eA==}}`},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) (m map[string]any) {
				if err := yaml.Unmarshal([]byte(text), &m); err != nil {
					t.Fatal(err)
				}
				return m
			}
			m := parse(c.given)
			dataFromText(m, vocabulary.Platform())
			if want := parse(c.want); !reflect.DeepEqual(m, want) {
				t.Errorf("got %v, want %v", m, want)
			}
		})
	}
}
