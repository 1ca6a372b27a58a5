package resource

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// requirements is a compiled selector: at most one requirement per label or field, so
// that a selector with thousands of terms is not evaluated term by term for each object.
type requirements struct {
	all    []requirement // sorted by name
	exists int           // how many require their label to exist
}

// requirement joins all terms of one label or field.
type requirement struct {
	name         string
	exists       bool     // the label must exist
	absent       bool     // the label must not exist
	in           []string // sorted; nil: any value; empty: none
	notIn        []string // sorted
	integer      bool     // the value must be an integer,
	above, below *int64   // between these; nil: no limit
}

// few is the number of requirements up to which each is looked up in the object.
// Beyond it, each label of the object is looked up in the requirements.
const few = 8

// compileLabels returns nil if the selector selects everything.
func compileLabels(s labels.Selector) *requirements {
	terms, _ := s.Requirements()
	var c compiler
	for i := range terms {
		r, values := c.of(terms[i].Key()), terms[i].ValuesUnsorted()
		switch terms[i].Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			r.require(values)
		case selection.NotIn, selection.NotEquals:
			r.notIn = append(r.notIn, values...)
		case selection.Exists:
			r.exists = true
		case selection.DoesNotExist:
			r.absent = true
		case selection.GreaterThan:
			r.bound(values, &r.above, func(limit, n int64) int64 { return max(limit, n) })
		case selection.LessThan:
			r.bound(values, &r.below, func(limit, n int64) int64 { return min(limit, n) })
		}
	}
	return c.finish()
}

// compileFields returns nil if the selector selects everything. A field that an object
// does not have is empty, so no requirement is about existence.
func compileFields(s fields.Selector) *requirements {
	var c compiler
	for _, term := range s.Requirements() {
		r := c.of(term.Field)
		if term.Operator == selection.NotEquals {
			r.notIn = append(r.notIn, term.Value)
		} else {
			r.require([]string{term.Value})
		}
	}
	return c.finish()
}

type compiler struct{ byName map[string]*requirement }

func (c *compiler) of(name string) *requirement {
	if c.byName == nil {
		c.byName = map[string]*requirement{}
	}
	r := c.byName[name]
	if r == nil {
		r = &requirement{name: name}
		c.byName[name] = r
	}
	return r
}

func (c *compiler) finish() *requirements {
	if len(c.byName) == 0 {
		return nil
	}
	var s requirements
	for _, r := range c.byName {
		slices.Sort(r.notIn)
		r.notIn = slices.Clip(slices.Compact(r.notIn))
		if r.exists {
			s.exists++
		}
		s.all = append(s.all, *r)
	}
	slices.SortFunc(s.all, func(a, b requirement) int { return strings.Compare(a.name, b.name) })
	return &s
}

// require intersects the allowed values.
func (r *requirement) require(values []string) {
	r.exists = true
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if r.in == nil {
		r.in = sorted
		return
	}
	both := make([]string, 0, len(r.in))
	for _, v := range r.in {
		if _, ok := slices.BinarySearch(sorted, v); ok {
			both = append(both, v)
		}
	}
	r.in = both
}

// bound adds a limit on integers. The parser has checked that it is one.
func (r *requirement) bound(values []string, limit **int64, narrower func(limit, n int64) int64) {
	r.exists, r.integer = true, true
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		r.in = []string{} // as a value that is not an integer fulfils nothing
		return
	}
	if *limit != nil {
		n = narrower(**limit, n)
	}
	*limit = &n
}

// matchLabels reports whether labels fulfil all requirements.
func (s *requirements) matchLabels(set map[string]string) bool {
	if s.exists > len(set) {
		return false
	}
	if len(s.all) <= few {
		for i := range s.all {
			r := &s.all[i]
			value, ok := set[r.name]
			if ok && !r.allows(value) || !ok && r.exists {
				return false
			}
		}
		return true
	}
	found := 0
	for name, value := range set {
		r := s.find(name)
		if r == nil {
			continue
		}
		if !r.allows(value) {
			return false
		}
		if r.exists {
			found++
		}
	}
	return found == s.exists
}

// matchFields reports whether fields fulfil all requirements. A type has few fields.
func (s *requirements) matchFields(set fieldSet) bool {
	for i := range s.all {
		if !s.all[i].allows(set.get(s.all[i].name)) {
			return false
		}
	}
	return true
}

func (s *requirements) find(name string) *requirement {
	i, ok := slices.BinarySearchFunc(s.all, name, func(r requirement, name string) int { return strings.Compare(r.name, name) })
	if !ok {
		return nil
	}
	return &s.all[i]
}

// allows reports whether a label that exists, or a field, may have this value.
func (r *requirement) allows(value string) bool {
	if r.absent {
		return false
	}
	if r.in != nil && !contains(r.in, value) || contains(r.notIn, value) {
		return false
	}
	if !r.integer {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (r.above == nil || n > *r.above) && (r.below == nil || n < *r.below)
}

func contains(sorted []string, value string) bool {
	if len(sorted) == 1 {
		return sorted[0] == value
	}
	_, ok := slices.BinarySearch(sorted, value)
	return ok
}
