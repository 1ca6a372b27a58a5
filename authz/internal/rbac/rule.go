package rbac

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/services"
)

// wildcard matches everything.
const wildcard = "*"

// question is one Attributes, prepared for comparison with many rules.
type question struct {
	services.Attributes
	// full is resource/subresource, or the resource alone.
	full string
}

func newQuestion(a services.Attributes) question {
	q := question{Attributes: a, full: a.Resource}
	if a.Subresource != "" {
		q.full = a.Resource + "/" + a.Subresource
	}
	return q
}

// allows reports whether the rule alone allows the request.
func (r *Rule) allows(q *question) bool {
	if !has(r.Verbs, q.Verb) {
		return false
	}
	if q.Path != "" {
		return r.coversPath(q.Path)
	}
	return has(r.APIGroups, q.Group) && r.coversResource(q) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, q.Name))
}

func (r *Rule) coversResource(q *question) bool {
	for _, resource := range r.Resources {
		if resource == wildcard || resource == q.full {
			return true
		}
		// "*/scale" is that subresource of every resource.
		if q.Subresource != "" && strings.HasPrefix(resource, "*/") && resource[2:] == q.Subresource {
			return true
		}
	}
	return false
}

func (r *Rule) coversPath(path string) bool {
	for _, covered := range r.NonResourceURLs {
		if covered == path {
			return true
		}
		if stem, ok := strings.CutSuffix(covered, wildcard); ok && strings.HasPrefix(path, stem) {
			return true
		}
	}
	return false
}

func has(list []string, value string) bool {
	for _, one := range list {
		if one == wildcard || one == value {
			return true
		}
	}
	return false
}
