package verdict

import (
	"strings"
	"testing"
)

func answer(code string, body any) map[string]any {
	return map[string]any{"code": code, "type": "application/json", "body": body}
}

func object(fields ...string) map[string]any {
	o := map[string]any{}
	for i := 0; i < len(fields); i += 2 {
		o[fields[i]] = fields[i+1]
	}
	return o
}

// resources returns a discovery document with resources of some names.
func resources(names ...string) map[string]any {
	var list []any
	for _, name := range names {
		list = append(list, object("name", name))
	}
	return map[string]any{"kind": "APIResourceList", "resources": list}
}

// warned returns an answer with warnings.
func warned(texts ...any) map[string]any {
	a := answer("200", object())
	a["warnings"] = texts
	return a
}

func TestCompareFinds(t *testing.T) {
	cases := []struct {
		name          string
		portico, peer map[string]any
		paths         string
	}{
		{"nothing", answer("200", object("a", "b")), answer("200", object("a", "b")), ""},
		{"a value", answer("200", object("a", "b")), answer("200", object("a", "c")), "body.a"},
		{"a field too much and one too few", answer("200", object("a", "b")), answer("200", object("c", "b")), "body.a body.c"},
		{"another type", answer("200", object("a", "b")), answer("200", "text"), "body"},
		{"an item", answer("200", []any{"a"}), answer("200", []any{"a", object("b", "c")}), "body[1]"},
		{"a code, and no more", answer("201", object("a", "b")), answer("422", object("kind", "Status", "message", "no")), "code"},
		{"a resource by its name", answer("200", resources("b", "c")), answer("200", resources("a", "b", "c")), "body.resources[a]"},
		{"the order of resources", answer("200", resources("b", "c", "d")), answer("200", resources("a", "c", "b")), "body.resources[a] body.resources[d] body.resources.order"},
		{"resources of one name", answer("200", resources("b", "b")), answer("200", resources("b", "c")), "body.resources[1].name"},
		{"a warning by its text", warned("b", "c"), warned("a", "b", "c"), "warnings[a]"},
		{"null is not nothing", answer("200", map[string]any{"a": nil}), answer("200", object()), "body.a"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var paths []string
			for _, d := range Compare("pods.v1", "creates/minimal", c.portico, c.peer) {
				paths = append(paths, d.Path)
			}
			if got := strings.Join(paths, " "); got != c.paths {
				t.Errorf("differs at %q, expected %q", got, c.paths)
			}
		})
	}
}

const list = `
- {reason: "1.36: another column", path: 'body\.a', kind: 'pods\.v1', peer: '"c"'}
`

func TestIntendedIsNotOpen(t *testing.T) {
	intended, err := ParseIntended([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	r := NewReport(intended)
	r.Add(Compare("pods.v1", "creates/minimal", answer("200", object("a", "b")), answer("200", object("a", "c"))))
	r.Add(Compare("pods.v1", "creates/minimal", answer("200", object("a", "b")), answer("200", object("a", "d"))))
	r.Add(Compare("nodes.v1", "creates/minimal", answer("200", object("a", "b")), answer("200", object("a", "c"))))
	r.Add(Compare("nodes.v1", "creates/minimal", answer("200", object()), answer("200", object())))
	if want := (Counts{Requests: 4, Agreeing: 1, Intended: 1, Open: 2}); r.Counts != want {
		t.Errorf("counted %+v, expected %+v", r.Counts, want)
	}
	if err := intended.Unused(); err != nil {
		t.Errorf("a used entry is called unused: %v", err)
	}
	var out strings.Builder
	if err := r.Print(&out, 1); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"at nodes.v1 creates/minimal", `peer:    "d"`, "4 requests, 1 agreeing, 1 intended, 2 open in 2 classes"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, out.String())
		}
	}
}

func TestUnusedEntryFails(t *testing.T) {
	intended, err := ParseIntended([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	NewReport(intended).Add(Compare("pods.v1", "x", answer("200", object("b", "b")), answer("200", object("b", "c"))))
	if err := intended.Unused(); err == nil || !strings.Contains(err.Error(), "another column") {
		t.Errorf("an entry that covers nothing: %v", err)
	}
}

func TestUnusedEntryOfAMomentPasses(t *testing.T) {
	intended, err := ParseIntended([]byte(`[{reason: it depends on the moment, sometimes: true, path: body}]`))
	if err != nil || intended.Unused() != nil {
		t.Errorf("%v, %v", err, intended.Unused())
	}
}

func TestParseIntendedRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"no reason": `[{path: body}]`, "no path": `[{reason: because}]`, "a wrong pattern": `[{reason: because, path: "("}]`, "an unknown field": `[{reason: r, path: p, other: x}]`,
	} {
		if _, err := ParseIntended([]byte(content)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
