package random

import (
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
)

// query returns parameters of a write: those that are given, and further ones.
func (s *sequence) query(given ...string) string {
	for _, q := range []struct {
		often  int
		values []string
	}{
		{8, []string{"dryRun=All", "dryRun=All", "dryRun=x", "dryRun=All&dryRun=All", "dryRun=all"}},
		{4, []string{"fieldValidation=Strict", "fieldValidation=Strict", "fieldValidation=Warn", "fieldValidation=Ignore", "fieldValidation=odd", "fieldValidation="}},
		{6, []string{"fieldManager=m1", "fieldManager=m2", "fieldManager=", "fieldManager=" + strings.Repeat("x", 129), "fieldManager=%00", "fieldManager=a&fieldManager=b"}},
		{15, []string{"pretty=true", "pretty=false", "pretty", "unknown=1", "timeout=5s", "timeout=x", "timeout=", "timeout=-1s", "timeout=0", ";", "a;b=c", "%zz", "force=true", "resourceVersion=1", "=", "&&"}},
	} {
		if s.one(q.often) {
			given = append(given, pick(s.dice, q.values...))
		}
	}
	return strings.Join(given, "&")
}

// to returns the path of an object; its version is one of those that are served.
func (s *sequence) to(name string) string { return s.collection() + "/" + name }

func (s *sequence) collection() string {
	if len(s.kind.Versions) == 0 {
		return s.kind.Collection
	}
	return strings.Replace(s.kind.Collection, fmt.Sprint(s.kind.Base["apiVersion"]), pick(s.dice, s.kind.Versions...), 1)
}

func (s *sequence) create() (string, corpus.Step) {
	body := s.whole(s.name())
	if s.one(5) {
		put(body, "/metadata/name", nil)
		put(body, "/metadata/generateName", pick(s.dice, "gen-", "gen-", "Gen-", strings.Repeat("x", 53)+"-gen-"))
	}
	return "create", s.encode(corpus.Step{Method: http.MethodPost, Path: s.collection(), Query: s.query(), Accept: s.accept(20)}, body)
}

// encode gives a step a body, mostly as JSON.
func (s *sequence) encode(step corpus.Step, body any) corpus.Step {
	step.Body = encoded(body)
	if s.one(12) {
		step.Type = pick(s.dice, "application/json; charset=utf-8", "application/yaml", "APPLICATION/JSON", "text/plain", "application/json;q=1", "application/merge-patch+json", "*/*", "application/xml", ";", "application/json, application/yaml")
		if content, err := yaml.JSONToYAML([]byte(encoded(body))); err == nil && step.Type == "application/yaml" {
			step.Body = string(content)
		}
	}
	return step
}

// replace writes an object as it was in an answer, or a whole new one.
func (s *sequence) replace() (string, corpus.Step) {
	name := s.name()
	step := corpus.Step{Method: http.MethodPut, Path: s.to(name), Query: s.query(), Accept: s.accept(20)}
	if s.one(2) {
		return "replace", s.encode(step, s.whole(name))
	}
	from, changed := s.earlier(), object{}
	s.change(changed, 1+s.IntN(2))
	fresh := s.one(3)
	step.Body = func(seen corpus.Seen) any {
		o, _ := clone(seen[from]).(object)
		if o == nil || o["metadata"] == nil {
			return changed
		}
		merge(o, changed)
		if fresh {
			put(o, "/metadata/resourceVersion", nil)
		}
		return encoded(o)
	}
	return "update", step
}

// merge sets the values of an object in another one.
func merge(into, from object) {
	for name, value := range from {
		inner, ok := value.(object)
		if below, also := into[name].(object); ok && also && len(inner) > 0 {
			merge(below, inner)
			continue
		}
		into[name] = value
	}
}

func (s *sequence) patch(kind string, body any, query ...string) corpus.Step {
	return corpus.Step{Method: http.MethodPatch, Path: s.to(s.name()), Type: "application/" + kind, Query: s.query(query...), Accept: s.accept(25), Body: encoded(body)}
}

func (s *sequence) mergePatch() (string, corpus.Step) {
	return "merge", s.patch(pick(s.dice, "merge-patch+json", "merge-patch+json", "merge-patch+json", "merge-patch+json; charset=utf-8"), s.partial())
}

// partial returns a patch with some fields, mostly without kind and name.
func (s *sequence) partial() object {
	o := object{}
	if s.one(6) {
		o = s.part("a")
	}
	s.change(o, s.IntN(3)+1)
	return o
}

func (s *sequence) strategicPatch() (string, corpus.Step) {
	o := s.partial()
	directives := map[string][]any{
		"/metadata/$deleteFromPrimitiveList~1finalizers": {[]any{"example.com/f"}, []any{}, "x", []any{1}},
		"/metadata/$setElementOrder~1finalizers":         {[]any{"example.com/g", "example.com/f"}, []any{}},
		"/metadata/ownerReferences":                      {[]any{object{"$patch": "delete", "uid": owner("1")["uid"]}}, []any{object{"$patch": "replace"}, owner("2")}, []any{object{"uid": owner("1")["uid"], "name": "n"}}},
		"/metadata/labels/$patch":                        {"replace", "delete", "odd", 1},
		"/metadata/annotations":                          {object{"$patch": "replace", "x": "y"}, object{"$retainKeys": []any{"c"}, "c": "d"}},
		"/metadata/labels/$retainKeys":                   {[]any{"app"}, []any{}},
		"/$patch":                                        {"replace", "delete", "merge"},
		"/$retainKeys":                                   {[]any{"metadata"}},
	}
	for range s.IntN(3) {
		if from := s.kind.Strategic; len(from) > 0 && !s.one(4) {
			pointer := key(s.dice, from)
			put(o, pointer, pick(s.dice, from[pointer]...))
			continue
		}
		pointer := key(s.dice, directives)
		put(o, pointer, pick(s.dice, directives[pointer]...))
	}
	return "strategic", s.patch("strategic-merge-patch+json", o)
}

// jsonPatch returns a JSON patch whose paths exist, nearly exist or are odd.
func (s *sequence) jsonPatch() (string, corpus.Step) {
	var operations []any
	pointer := func() string {
		path, _ := s.field()
		if s.one(4) {
			path += pick(s.dice, "/0", "/-", "/1", "/-1", "/00", "/~0", "/~1a", "/~", "/~2", "/", "/name", "/app", "/a", "/01", "/1e0", "/99999999999999999999", "/é")
		}
		if s.one(20) {
			path = pick(s.dice, "", "/", "metadata/labels", "//", "/metadata/", "/status", "/spec", "/metadata", "/kind", "/apiVersion", "/missing/x", "#/data", "/-")
		}
		return path
	}
	for range 1 + s.IntN(3) {
		path, value := s.field()
		if s.one(3) {
			path = pointer()
		}
		o := object{"op": pick(s.dice, "add", "add", "add", "add", "replace", "replace", "remove", "test", "test", "copy", "move"), "path": path}
		switch {
		case o["op"] == "copy" || o["op"] == "move":
			o["from"] = pointer()
		case o["op"] != "remove":
			o["value"] = value
		}
		if s.one(25) {
			pick(s.dice, func() { delete(o, "value") }, func() { delete(o, "path") }, func() { delete(o, "op") }, func() { delete(o, "from") },
				func() { o["op"] = pick(s.dice, "ADD", "odd", "") }, func() { o["path"] = 1 }, func() { o["x"] = 1 })()
		}
		operations = append(operations, o)
	}
	body := any(operations)
	if s.one(40) {
		body = pick[any](s.dice, []any{}, object{}, nil, "x", []any{nil}, []any{1}, operations[0])
	}
	return "json-patch", s.patch("json-patch+json", body)
}

func (s *sequence) apply() (string, corpus.Step) {
	name := s.name()
	body := s.part(name)
	query := []string{"fieldManager=" + pick(s.dice, "m1", "m1", "m2", "m2", "m3")}
	if s.one(3) {
		query = append(query, pick(s.dice, "force=true", "force=true", "force=false", "force=x", "force=", "force=1"))
	}
	step := s.patch("apply-patch+yaml", body, query...)
	step.Path = s.to(name)
	if len(s.kind.Versions) > 0 && s.one(2) {
		step.Path = s.kind.Collection + "/" + name
	}
	if _, ok := s.kind.Subresources["status"]; ok && s.one(5) {
		step.Path += "/status"
	}
	if content, err := yaml.JSONToYAML([]byte(encoded(body))); err == nil && s.one(8) {
		step.Body = string(content)
	}
	return "apply", step
}

// deletion returns parameters or a body of a deletion.
func (s *sequence) deletion(step corpus.Step) corpus.Step {
	step.Query = strings.Join(append(strings.Fields(step.Query), strings.Fields(pick(s.dice, "", "", "", "propagationPolicy=Foreground", "propagationPolicy=Orphan", "propagationPolicy=Background", "propagationPolicy=odd", "gracePeriodSeconds=0", "gracePeriodSeconds=5",
		"gracePeriodSeconds=-1", "gracePeriodSeconds=x", "dryRun=All", "orphanDependents=true", "orphanDependents=x", "propagationPolicy=Orphan&propagationPolicy=Foreground", "ignoreStoreReadErrorWithClusterBreakingPotential=true"))...), "&")
	// The reference server ignores the parameters beside a body, dryRun too: it would delete the object.
	if step.Query != "" || !s.one(2) {
		return step
	}
	options := clone(pick(s.dice, s.values.Deletions...)).(object)
	if s.one(8) {
		options = object{"preconditions": object{"resourceVersion": "<<version " + s.earlier() + ">>"}}
	}
	step.Body = encoded(options)
	return step
}

func (s *sequence) remove() (string, corpus.Step) {
	return "delete", s.deletion(corpus.Step{Method: http.MethodDelete, Path: s.to(s.name()), Accept: s.accept(20)})
}

func (s *sequence) removeAll() (string, corpus.Step) {
	return "delete-all", s.deletion(corpus.Step{Method: http.MethodDelete, Path: s.collection(), Query: s.selectors(), Accept: s.accept(20)})
}

// subresource writes or reads what is below an object.
func (s *sequence) subresource() (string, corpus.Step) {
	if len(s.kind.Subresources) == 0 {
		return s.get()
	}
	name := key(s.dice, s.kind.Subresources)
	step := corpus.Step{Path: s.to(s.name()) + "/" + name, Accept: s.accept(20)}
	body := clone(pick(s.dice, s.kind.Subresources[name]...))
	switch s.IntN(6) {
	case 0:
		step.Method = http.MethodGet
		return name + "-get", step
	case 1:
		step.Method, step.Query = http.MethodPost, s.query()
		return name + "-post", s.encode(step, body)
	case 2, 3:
		step.Method, step.Type, step.Query = http.MethodPatch, "application/"+pick(s.dice, "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"), s.query()
		step.Body = encoded(body)
		return name + "-patch", step
	case 4:
		step.Method, step.Query = pick(s.dice, http.MethodDelete, http.MethodPost), s.query()
		return name + "-odd", s.encode(step, body)
	}
	step.Method, step.Query = http.MethodPut, s.query()
	if o, ok := body.(object); ok && name != "scale" {
		whole := s.whole(s.name())
		merge(whole, o)
		body = whole
	}
	if name == "binding" || name == "eviction" || name == "token" {
		step.Method = http.MethodPost
		body = clone(pick(s.dice, s.kind.Subresources[name]...))
	}
	return name + "-put", s.encode(step, body)
}

// text sends a body that is spoiled.
func (s *sequence) text() (string, corpus.Step) {
	name := s.name()
	body := s.spoil(encoded(s.part(name)))
	step := corpus.Step{Path: s.to(name), Body: body, Query: s.query(), Method: pick(s.dice, http.MethodPost, http.MethodPut, http.MethodPatch)}
	switch step.Method {
	case http.MethodPost:
		step.Path = s.collection()
		step.Type = pick(s.dice, "", "", "application/yaml")
	case http.MethodPatch:
		step.Type = "application/" + pick(s.dice, "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml", "json-patch+json")
		if strings.HasPrefix(step.Type, "application/apply") {
			step.Query = "fieldManager=m1"
		}
	}
	return "text", step
}
