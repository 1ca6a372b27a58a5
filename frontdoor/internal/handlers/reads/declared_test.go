package reads

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/feed"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

var widgets = resource.GroupResource{Group: "example.com", Resource: "widgets", Custom: true}

// selects returns a request for widgets, whose color is selectable.
func selects(t *testing.T, fieldSelector string) *request.Request {
	t.Helper()
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := typesystem.New(types, typesystem.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	of := &catalogue.Type{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true, Custom: true, Key: widgets,
		Selectable: []catalogue.SelectableField{{Name: "spec.color", Path: []string{"spec", "color"}}}}
	of.Stored, of.Siblings = of, map[string]*catalogue.Type{"v1": of}
	return &request.Request{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Verb: "list", Query: url.Values{"fieldSelector": {fieldSelector}}, Type: of, Engine: engine}
}

// widget is an object as it is stored; recorded says whether its fields are.
func widget(name, color string, recorded bool) services.Object {
	o := services.Object{Key: resource.Key{GroupResource: widgets, Namespace: "a", Name: name},
		JSON: []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"` + name + `","namespace":"a"},"spec":{"color":"` + color + `"}}`)}
	if recorded {
		o.Fields = map[string]string{"spec.color": color}
	}
	return o
}

// TestListsByDeclaredFields lists objects, half of them from before the definition, with and
// without a limit.
func TestListsByDeclaredFields(t *testing.T) {
	store := fake.New(t).Store()
	for i := range 2*examined + 10 {
		color := "red"
		if i%examined != examined-1 && i < 2*examined {
			color = "blue"
		}
		o := widget(fmt.Sprintf("w%04d", i), color, i%2 == 0)
		if _, err := store.Create(t.Context(), services.CreateRequest{Key: o.Key, Content: services.Content{JSON: o.JSON, Fields: o.Fields}}); err != nil {
			t.Fatal(err)
		}
	}
	h := New(Config{Store: store})
	for selector, want := range map[string]int{"spec.color=red": 12, "spec.color!=red": 2*examined - 2, "spec.color=red,metadata.name=w0499": 1,
		"spec.color=red,metadata.name!=w0499": 11, "spec.color=": 0, "spec.color=red,spec.color=blue": 0, "metadata.name=w0001": 1, `spec.color=a\,b`: 0} {
		r := selects(t, selector)
		for _, limit := range []int{0, 1, 5, 12, 600} {
			if limit > 0 && want/limit > 20 {
				continue // each page of the fake sorts all objects
			}
			reader, _, err := h.reader(r, selector)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			_, err = services.ForEach(t.Context(), reader, services.ListRequest{GroupResource: widgets, Limit: limit, FieldSelector: selector}, func(o services.Object) error {
				names = append(names, o.Key.Name)
				return nil
			})
			if err != nil || len(names) != want || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != want {
				t.Errorf("%s, limit %d: %d objects, want %d, %v", selector, limit, len(names), want, err)
			}
			if page, err := reader.List(t.Context(), services.ListRequest{GroupResource: widgets, Limit: limit, FieldSelector: selector}); limit > 0 && (err != nil || len(page.Objects) != min(limit, want)) {
				t.Errorf("%s, limit %d: a page of %d, %v", selector, limit, len(page.Objects), err)
			}
		}
	}
}

// TestEventsByDeclaredFields has what a watcher of red widgets sees of each change.
func TestEventsByDeclaredFields(t *testing.T) {
	r := selects(t, "spec.color=red")
	own, err := declaredFields(r, "spec.color=red")
	if err != nil || own == nil || own.rest != "" {
		t.Fatal(own, err)
	}
	const none, unknown = services.ChangeType(0), services.ChangeType(100)
	for name, x := range map[string]struct {
		kind        services.ChangeType
		before, now string // the color
		recorded    bool
		same        bool // the hub has found what is recorded equal
		want        services.ChangeType
	}{
		"created":                  {services.Added, "", "red", true, false, services.Added},
		"created otherwise":        {services.Added, "", "blue", true, false, none},
		"created, not recorded":    {services.Added, "", "red", false, false, services.Added},
		"becomes red":              {services.Modified, "blue", "red", true, false, services.Added},
		"is no longer red":         {services.Modified, "red", "blue", true, false, services.Deleted},
		"stays red":                {services.Modified, "red", "red", true, true, services.Modified},
		"recorded now":             {services.Modified, "red", "red", true, false, services.Modified},
		"stays blue":               {services.Modified, "blue", "blue", true, true, none},
		"deleted":                  {services.Deleted, "", "red", true, false, services.Deleted},
		"deleted, not recorded":    {services.Deleted, "", "red", false, false, services.Deleted},
		"deleted otherwise":        {services.Deleted, "", "blue", true, false, none},
		"of before the definition": {services.Modified, "red", "blue", false, true, unknown},
	} {
		entry := &feed.Entry{Change: services.Change{Type: x.kind, Object: widget("w", x.now, x.recorded)}}
		entry.Object.Revision = 5
		if before := widget("w", x.before, false); x.kind == services.Modified && !x.same {
			entry.OldJSON = before.JSON
		}
		for range 2 { // the second time from what the first has kept
			seen, ok, err := own.event(t.Context(), feed.Event{Type: x.kind, Entry: entry})
			switch {
			case x.want == unknown:
				if !services.IsReason(err, services.ReasonExpired) {
					t.Errorf("%s: %v", name, err)
				}
			case err != nil || ok != (x.want != none) || ok && seen.Type != x.want:
				t.Errorf("%s: %v %v, want %v, %v", name, seen.Type, ok, x.want, err)
			}
		}
	}
}
