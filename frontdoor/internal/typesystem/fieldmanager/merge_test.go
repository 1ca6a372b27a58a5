package fieldmanager

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/golden"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// story is one case: a sequence of writes to one object, each with the resulting object or
// error. The file has both input and output.
type story struct {
	Type       string `json:"type"` // short group/version/resource
	Vocabulary string `json:"vocabulary,omitempty"`
	Steps      []step `json:"steps"`
}

// step is one write; exactly one of the types of content is set.
type step struct {
	By        string         `json:"by,omitempty"`
	Through   string         `json:"through,omitempty"` // subresource
	Force     bool           `json:"force,omitempty"`
	Apply     map[string]any `json:"apply,omitempty"`
	Merge     map[string]any `json:"merge,omitempty"`
	Strategic map[string]any `json:"strategic,omitempty"`
	JSON      []any          `json:"json,omitempty"`
	Put       map[string]any `json:"put,omitempty"`

	Gives map[string]any `json:"gives,omitempty"`
	Same  bool           `json:"same,omitempty"` // nothing changed
	Error string         `json:"error,omitempty"`
}

// TestGolden runs all stories in testdata. After an intended change, run it with -update
// and review the difference.
func TestGolden(t *testing.T) {
	engines := map[string]*bench{}
	for _, name := range []string{"platform", "k8s"} {
		v, err := vocabulary.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		engines[name] = newBench(t, v)
	}
	golden.Run(t, func(t *testing.T, _ string, c story) story {
		return engines[cmp.Or(c.Vocabulary, "platform")].run(t, c)
	})
}

// bench is an engine with a clock that moves a minute with each write.
type bench struct {
	*Engine
	types *catalogue.Catalogue
	now   time.Time
}

func newBench(t testing.TB, v vocabulary.Vocabulary) *bench {
	t.Helper()
	return newBenchOf(t, v, release.V121)
}

func newBenchOf(t testing.TB, v vocabulary.Vocabulary, r release.Release) *bench {
	t.Helper()
	types, err := catalogue.New(catalogue.Options{Vocabulary: v, Release: r})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{types: types}
	b.Engine = New(Options{Types: types, Vocabulary: v, Now: func() time.Time { return b.now }})
	return b
}

func (b *bench) lookup(t testing.TB, name string) *catalogue.Type {
	t.Helper()
	part := strings.Split(name, "/")
	ty, ok := b.types.Lookup(b.Vocabulary.Group(part[0]), part[1], part[2])
	if !ok {
		t.Fatalf("no type %s", name)
	}
	return ty
}

// run runs the steps of a story and returns it with their results.
func (b *bench) run(t *testing.T, s story) story {
	t.Helper()
	ty := b.lookup(t, s.Type)
	b.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var live map[string]any
	result := story{Type: s.Type, Vocabulary: s.Vocabulary}
	for _, step := range s.Steps {
		b.now = b.now.Add(time.Minute)
		before := copyOf(live)
		next, err := b.do(t, ty, step, live)
		if !tree.Equal(before, live) {
			t.Errorf("step of %s modified the current object", step.By)
		}
		step.Gives, step.Same, step.Error = nil, false, ""
		switch {
		case err != nil:
			step.Error = services.AsStatus(err).Reason + ": " + err.Error()
		case live != nil && tree.Equal(live, next):
			step.Same = true
		default:
			live, step.Gives = next, copyOf(next)
		}
		result.Steps = append(result.Steps, step)
	}
	return result
}

func (b *bench) do(t *testing.T, ty *catalogue.Type, s step, live map[string]any) (map[string]any, error) {
	t.Helper()
	r := PatchRequest{Type: ty, Current: live, Manager: s.By, Force: s.Force, Subresource: s.Through}
	switch {
	case s.Apply != nil:
		r.MediaType, r.Body = MediaTypeApply, []byte(dump(t, s.Apply))
	case s.Merge != nil:
		r.MediaType, r.Body = MediaTypeMerge, asJSON(t, s.Merge)
	case s.Strategic != nil:
		r.MediaType, r.Body = MediaTypeStrategic, asJSON(t, s.Strategic)
	case s.JSON != nil:
		r.MediaType, r.Body = MediaTypeJSON, asJSON(t, s.JSON)
	}
	next := decodeYAML(t, dump(t, s.Put))
	if r.MediaType != "" {
		var err error
		if next, _, err = b.Patch(t.Context(), r); err != nil || s.Apply != nil {
			return next, err
		}
	}
	if live == nil {
		setUID(next)
	}
	return next, b.Track(Change{Type: ty, Live: live, New: next, Manager: s.By, Subresource: s.Through})
}

// setUID marks an object as stored.
func setUID(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata["uid"] = "u-1"
	}
}

func asJSON(t testing.TB, value any) []byte {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(dump(t, value)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decodeYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func dump(t testing.TB, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestUpdatersAreBounded: the number of entries of updates does not exceed ten.
func TestUpdatersAreBounded(t *testing.T) {
	b := newBench(t, vocabulary.Platform())
	ty := b.lookup(t, "/v1/configmaps")
	var live map[string]any
	for i := range 30 {
		b.now = b.now.Add(time.Minute)
		name := string(rune('a' + i))
		next := copyOf(live)
		if next == nil {
			next = decodeYAML(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, data: {}}")
		}
		next["data"].(map[string]any)[name] = "x"
		if err := b.Track(Change{Type: ty, Live: live, New: next, Manager: name}); err != nil {
			t.Fatal(err)
		}
		live = next
	}
	list := ownersOf(live)
	if len(list) != maxUpdaters {
		t.Errorf("%d entries, want %d", len(list), maxUpdaters)
	}
	o, err := decodeOwners(list)
	if err != nil {
		t.Fatal(err)
	}
	owned := 0
	for _, set := range o.fields {
		owned += set.Set().Size()
	}
	if owned != 31 { // each key, and data itself
		t.Errorf("%d fields are owned, want 31", owned)
	}
}

// TestRefusals: invalid patches, and types of patches that a type does not support.
func TestRefusals(t *testing.T) {
	b := newBench(t, vocabulary.Platform())
	ty := b.lookup(t, "/v1/configmaps")
	current := decodeYAML(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
	bomb := `[{"op":"add","path":"/data/x","value":"` + strings.Repeat("x", 1000) + `"}` +
		strings.Repeat(`,{"op":"copy","from":"/data","path":"/data/y"},{"op":"copy","from":"/data","path":"/data/x"}`, 30) + `]`
	for name, c := range map[string]struct {
		media, body string
		code        int32
	}{
		"no JSON":                    {MediaTypeMerge, "{", 400},
		"merge patch of a list":      {MediaTypeMerge, "[]", 400},
		"null":                       {MediaTypeMerge, "null", 400},
		"unknown media type":         {"text/plain", "{}", 415},
		"JSON patch that is none":    {MediaTypeJSON, "{}", 400},
		"test that fails":            {MediaTypeJSON, `[{"op":"test","path":"/data/k","value":"w"}]`, 422},
		"path that is not there":     {MediaTypeJSON, `[{"op":"replace","path":"/data/w/x","value":1}]`, 422},
		"object is gone":             {MediaTypeJSON, `[{"op":"replace","path":"","value":1}]`, 422},
		"too many operations":        {MediaTypeJSON, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"ConfigMap"},`, 10000) + `{"op":"test","path":"/kind","value":"ConfigMap"}]`, 413},
		"copies that grow":           {MediaTypeJSON, bomb, 422},
		"apply of nothing":           {MediaTypeApply, "{}", 400},
		"apply of another kind":      {MediaTypeApply, "{apiVersion: v1, kind: Secret}", 400},
		"apply of what does not fit": {MediaTypeApply, "{apiVersion: v1, kind: ConfigMap, data: {a: 1}}", 400},
		"strategic: unknown $patch":  {MediaTypeStrategic, `{"data":{"$patch":"explode"}}`, 400},
		"strategic: bad directive":   {MediaTypeStrategic, `{"data":{"$retainKeys":"x"}}`, 400},
	} {
		_, _, err := b.Patch(t.Context(), PatchRequest{Type: ty, MediaType: c.media, Body: []byte(c.body), Current: current})
		var s *services.Status
		if !errors.As(err, &s) || s.Code != c.code {
			t.Errorf("%s: got %v, want a status with code %d", name, err, c.code)
		}
	}
}
