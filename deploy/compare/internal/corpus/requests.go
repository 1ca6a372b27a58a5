package corpus

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/portico-platform/portico/deploy/compare/internal/openapi"
)

// fileCase is a case in a file of requests/.
type fileCase struct {
	Name  string
	Kind  struct{ Group, Version, Kind string }
	Steps []fileStep
}

type fileStep struct {
	Name, Method, Path, Query, Accept, Type, Text string
	Body                                          object
}

// requests reads the hand-written cases of the kinds that both servers serve.
func requests(kinds []*Kind) (all []Case, err error) {
	known := map[openapi.Kind]*Kind{}
	for _, k := range kinds {
		known[k.Kind] = k
	}
	err = documents("requests", func(file string, o object) error {
		var c fileCase
		decoder := json.NewDecoder(strings.NewReader(encoded(o)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if c.Name == "" || len(c.Steps) == 0 {
			return fmt.Errorf("%s: a case without a name or steps", file)
		}
		k := known[openapi.Kind(c.Kind)]
		if k == nil {
			return nil
		}
		converted := Case{Kind: k, Name: c.Name}
		for i, s := range c.Steps {
			step := Step{Name: s.Name, Method: s.Method, Path: s.Path, Query: s.Query, Accept: s.Accept, Type: s.Type}
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
		return nil
	})
	return all, err
}
