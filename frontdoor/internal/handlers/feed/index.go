package feed

import (
	"strings"
	"sync"

	"github.com/portico-platform/portico/services"
)

// index finds the watchers that a change concerns. Watchers with the same selection form
// a group, whose selector is evaluated once for a change; and each group is filed under
// properties of which every object in its selection has one, so that only the groups
// that a change may concern are evaluated.
type index struct {
	mu     sync.Mutex
	groups map[groupKey]*group
	files  map[property]map[*group]struct{}
	// fields and labels count the groups that are filed under each, so that only those
	// in use are looked up.
	fields, labels map[string]int
}

type groupKey struct{ namespaces, selector string }

func (s *Selection) key() groupKey {
	if s.Namespaces != nil {
		return groupKey{"," + strings.Join(*s.Namespaces, ","), s.Selector.Text()}
	}
	return groupKey{s.namespace(), s.Selector.Text()}
}

// group holds the watchers with the same selection.
type group struct {
	selection Selection // of one of them: After is without meaning
	filed     filing
	watchers  []*Watcher
}

// attribute is a field or a label of objects. The zero value is one that every object has.
type attribute struct {
	label bool
	name  string
}

// property is an attribute of the objects in a namespace, or in all if that is empty.
type property struct {
	namespace string
	attribute
	exists bool // the label may have any value
	value  string
}

// filing is where a group is filed: under one attribute with one or several values.
type filing struct {
	attribute
	at []property
}

const (
	byName      = "metadata.name"
	byNamespace = "metadata.namespace"
	// filings bounds the number of labels of a selector that are considered for filing,
	// and the number of values of a label.
	filings = 16
)

func newIndex() *index {
	return &index{groups: map[groupKey]*group{}, files: map[property]map[*group]struct{}{}, fields: map[string]int{}, labels: map[string]int{}}
}

// add registers a watcher and wakes it once, for the changes before its registration.
func (x *index) add(w *Watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := w.selection.key()
	g := x.groups[key]
	if g == nil {
		g = &group{selection: w.selection}
		x.groups[key] = g
		x.file(g)
	}
	w.group, w.at = g, len(g.watchers)
	g.watchers = append(g.watchers, w)
	w.signal(w.position + 1)
}

func (x *index) remove(w *Watcher) {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := w.group
	if g == nil {
		return
	}
	w.group = nil
	last := len(g.watchers) - 1
	g.watchers[w.at] = g.watchers[last]
	g.watchers[w.at].at = w.at
	g.watchers[last] = nil
	g.watchers = g.watchers[:last]
	if last > 0 {
		return
	}
	delete(x.groups, g.selection.key())
	for _, p := range g.filed.at {
		delete(x.files[p], g)
		if len(x.files[p]) == 0 {
			delete(x.files, p)
		}
	}
	used := x.used(g.filed.attribute)
	if used[g.filed.name]--; used[g.filed.name] == 0 {
		delete(used, g.filed.name)
	}
}

func (x *index) used(a attribute) map[string]int {
	if a.label {
		return x.labels
	}
	return x.fields
}

// file files a group where the fewest groups are.
func (x *index) file(g *group) {
	fewest := -1
	for _, f := range g.selection.filings() {
		n := 0
		for _, p := range f.at {
			n += len(x.files[p])
		}
		if fewest < 0 || n < fewest {
			fewest, g.filed = n, f
		}
	}
	for _, p := range g.filed.at {
		if x.files[p] == nil {
			x.files[p] = map[*group]struct{}{}
		}
		x.files[p][g] = struct{}{}
	}
	x.used(g.filed.attribute)[g.filed.name]++
}

// namespace returns the namespace of all selected objects; empty if there are several.
func (s *Selection) namespace() string {
	if s.Namespace != "" {
		return s.Namespace
	}
	namespace, _ := s.Selector.Field(byNamespace)
	return namespace
}

// filings returns the possible filings of a selection, those with the fewest objects
// first: by a field, by a label, and by nothing but the namespace. One of several namespaces is
// filed by these only.
func (s *Selection) filings() (all []filing) {
	if s.Namespaces != nil {
		var f filing
		for _, namespace := range *s.Namespaces {
			f.at = append(f.at, property{namespace: namespace})
		}
		return []filing{f}
	}
	namespace := s.namespace()
	for _, field := range s.Selector.FieldNames() {
		if value, ok := s.Selector.Field(field); ok && field != byNamespace {
			a := attribute{name: field}
			all = append(all, filing{a, []property{{namespace: namespace, attribute: a, value: value}}})
		}
	}
	for _, c := range s.Selector.LabelConditions(filings) {
		f := filing{attribute: attribute{label: true, name: c.Name}}
		for _, value := range c.Values {
			f.at = append(f.at, property{namespace: namespace, attribute: f.attribute, value: value})
		}
		if c.Values == nil {
			f.at = []property{{namespace: namespace, attribute: f.attribute, exists: true}}
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		all = []filing{{at: []property{{namespace: namespace}}}}
	}
	return all
}

// wake signals the watchers whose selection has the state before or after a change.
func (x *index) wake(c *services.Change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.candidates(c, func(g *group) {
		if g.selection.eventType(c) != 0 {
			g.signal(c.Object.Revision)
		}
	})
}

// candidates visits the groups whose selection a change may concern, some of them twice.
func (x *index) candidates(c *services.Change, visit func(*group)) {
	s := search{index: x, change: c, visit: visit}
	for name := range x.fields {
		p := property{attribute: attribute{name: name}, value: s.field(c.Object.Fields, name)}
		s.filed(p)
		if before := s.field(c.OldFields, name); before != p.value {
			p.value = before
			s.filed(p)
		}
	}
	if len(x.labels) == 0 {
		return
	}
	for name, value := range c.Object.Labels {
		s.label(name, value, true)
	}
	for name, value := range c.OldLabels {
		if now, ok := c.Object.Labels[name]; !ok || now != value {
			s.label(name, value, !ok)
		}
	}
}

// search is the search for the candidates of one change.
type search struct {
	*index
	change *services.Change
	visit  func(*group)
}

// field returns a field of the state that has these selectable fields; the zero value for
// the attribute of every object.
func (s search) field(fields map[string]string, name string) string {
	switch name {
	case "":
		return ""
	case byName:
		return s.change.Object.Key.Name
	}
	return fields[name]
}

// label visits the groups that are filed under a label's value and, if exists is set, under
// its existence.
func (s search) label(name, value string, exists bool) {
	if s.labels[name] == 0 {
		return
	}
	a := attribute{label: true, name: name}
	if exists {
		s.filed(property{attribute: a, exists: true})
	}
	s.filed(property{attribute: a, value: value})
}

// filed visits the groups that are filed under a property, in all namespaces and in that of
// the change.
func (s search) filed(p property) {
	for g := range s.files[p] {
		s.visit(g)
	}
	if p.namespace = s.change.Object.Key.Namespace; p.namespace == "" {
		return
	}
	for g := range s.files[p] {
		s.visit(g)
	}
}

// signal wakes the watchers of a group for a change at revision.
func (g *group) signal(revision int64) {
	for _, w := range g.watchers {
		w.signal(revision)
	}
}

// wakeAll signals all watchers, after the ring was replaced.
func (x *index) wakeAll(revision int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, g := range x.groups {
		g.signal(revision)
	}
}
