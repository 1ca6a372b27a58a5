package corpus

import (
	"fmt"

	"github.com/portico-platform/portico/test/compare/internal/corpus/written"
	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

// requests returns the hand-written cases of the kinds that both servers serve.
func requests(kinds []*Kind) (all []Case, err error) {
	known := map[openapi.Kind]*Kind{}
	for _, k := range kinds {
		known[k.Kind] = k
	}
	cases, err := written.Cases()
	for _, c := range cases {
		k := known[c.Kind]
		if k == nil {
			continue
		}
		converted := Case{Kind: k, Name: c.Name}
		for i, s := range c.Steps {
			step := Step{Name: s.Name, Method: s.Method, Path: c.Base + s.Path, Query: s.Query, Accept: s.Accept, Type: s.Type}
			if step.Name == "" {
				step.Name = fmt.Sprint(i + 1)
			}
			switch {
			case s.Text != "":
				step.Body = s.Text
			case s.Body != nil:
				step.Body = s.Body
			}
			converted.Steps = append(converted.Steps, step)
		}
		all = append(all, converted)
	}
	return all, err
}
