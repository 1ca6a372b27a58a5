package verdict

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Intended is the reviewed list of intended differences.
type Intended struct{ entries []*entry }

// entry is a set of intended differences in the format of the file. Kind, Step, Path,
// Portico and Peer are regular expressions that match the whole value; an omitted one
// matches everything. Sometimes is set for a difference that depends on the moment.
type entry struct {
	Reason                          string
	Sometimes                       bool
	Kind, Step, Path, Portico, Peer string

	patterns [5]*regexp.Regexp
	used     int
}

// ParseIntended reads lists and joins them.
func ParseIntended(lists ...[]byte) (*Intended, error) {
	var entries []*entry
	for _, content := range lists {
		var some []*entry
		if err := yaml.UnmarshalStrict(content, &some); err != nil {
			return nil, err
		}
		entries = append(entries, some...)
	}
	for i, e := range entries {
		if strings.TrimSpace(e.Reason) == "" {
			return nil, fmt.Errorf("entry %d has no reason", i+1)
		}
		if e.Path == "" {
			return nil, fmt.Errorf("entry %d (%s) has no path: it would hide everything", i+1, e.Reason)
		}
		for j, pattern := range []string{e.Kind, e.Step, e.Path, e.Portico, e.Peer} {
			if pattern == "" {
				continue
			}
			compiled, err := regexp.Compile(`(?s)^(?:` + pattern + `)$`)
			if err != nil {
				return nil, fmt.Errorf("entry %d (%s): %w", i+1, e.Reason, err)
			}
			e.patterns[j] = compiled
		}
	}
	return &Intended{entries}, nil
}

// Covers reports whether a difference is in the list. The first entry that matches
// counts as used.
func (l *Intended) Covers(d Difference) bool {
	for _, e := range l.entries {
		if e.matches(d) {
			e.used++
			return true
		}
	}
	return false
}

func (e *entry) matches(d Difference) bool {
	for i, value := range []string{d.Kind, d.Step, d.Path, d.Portico, d.Peer} {
		if e.patterns[i] != nil && !e.patterns[i].MatchString(value) {
			return false
		}
	}
	return true
}

// Unused returns an error that lists the entries without a match. The differences they
// describe no longer exist, so the entries can be removed.
func (l *Intended) Unused() error {
	var all []error
	for i, e := range l.entries {
		if e.used == 0 && !e.Sometimes {
			all = append(all, fmt.Errorf("entry %d covers nothing: %s (path %s)", i+1, e.Reason, e.Path))
		}
	}
	return errors.Join(all...)
}
