package reads

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/feed"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/resource"
)

// declared is the part of a field selector that is about fields that the definition of a
// custom type declares as selectable. The store cannot evaluate it, because definitions
// change, and because the values are those of the object in the version of the request.
type declared struct {
	engine   *typesystem.Engine
	of       *catalogue.Type
	selector resource.Selector
	rest     string // the rest of the field selector
}

// declaredFields returns the part of a valid field selector; nil if there is none.
func declaredFields(r *request.Request, fieldSelector string) (*declared, error) {
	if !r.Type.Custom || len(r.Type.Selectable) == 0 || fieldSelector == "" {
		return nil, nil
	}
	parsed, err := ledger.ParseFields(fieldSelector)
	if err != nil {
		return nil, services.BadRequest("%v", err)
	}
	var own, rest []string
	for _, q := range parsed.Requirements() {
		text := q.Field + string(q.Operator) + fields.EscapeValue(q.Value)
		if strings.HasPrefix(q.Field, "metadata.") {
			rest = append(rest, text)
		} else {
			own = append(own, text)
		}
	}
	if len(own) == 0 {
		return nil, nil
	}
	selector, err := resource.ParseSelector("", strings.Join(own, ","))
	if err != nil {
		return nil, services.BadRequest("%v", err)
	}
	return &declared{engine: r.Engine, of: r.Type, selector: selector, rest: strings.Join(rest, ",")}, nil
}

// reader returns what lists the objects that a request selects, and where their cost is recorded.
func (h *Handlers) reader(r *request.Request, fieldSelector string) (services.Reader, *fairness.Costs, error) {
	readable, costs := h.readable(r)
	d, err := declaredFields(r, fieldSelector)
	if d == nil {
		return readable, costs, err
	}
	return &selecting{Reader: readable, declared: d}, costs, nil
}

// selecting is a store that evaluates the declared fields of the requests of one list.
type selecting struct {
	services.Reader
	*declared
}

// examined is how many objects are examined at a time for a page with a limit.
const examined = 500

// List implements services.Reader. A page may be empty and have a next one.
func (s *selecting) List(ctx context.Context, r services.ListRequest) (services.Page, error) {
	limit := r.Limit
	r.FieldSelector, r.FindEnd = s.rest, false
	var found []services.Object
	for {
		if limit > 0 {
			r.Limit = max(limit, examined)
		}
		page, err := s.Reader.List(ctx, r)
		if err != nil {
			return page, err
		}
		matching, err := s.matching(ctx, page.Objects)
		if err != nil {
			return page, err
		}
		left := limit - len(found)
		full := limit > 0 && len(matching) > left // the page ends after one of these objects
		if full {
			matching = matching[:left]
		}
		for _, i := range matching {
			found = append(found, page.Objects[i])
		}
		if full {
			cut := page.Following(r)
			cut.After, cut.Limit = r.After, matching[left-1]+1
			if page, err = s.Reader.List(ctx, cut); err != nil {
				return page, err
			}
		}
		if limit == 0 || page.Next == "" || len(found) == limit {
			page.Objects, page.Remaining = found, -1
			return page, nil
		}
		r = page.Following(r)
	}
}

// matching returns the indices of the objects that are selected.
func (s *selecting) matching(ctx context.Context, objects []services.Object) (selected []int, err error) {
	for from := 0; from < len(objects); {
		part := objects[from : min(len(objects)-from, partOf(s.of))+from]
		values, err := s.engine.FieldsOf(ctx, part, s.of)
		if err != nil {
			return nil, err
		}
		for i := range part {
			if s.selector.Matches(part[i].Key, nil, values[i]) {
				selected = append(selected, from+i)
			}
		}
		from += len(part)
	}
	return selected, nil
}

// event returns an event of the rest of the selector as a watcher of the whole sees it; false
// if it sees none. It returns Expired (410) if the fields before the change are unknown.
func (d *declared) event(ctx context.Context, e feed.Event) (feed.Event, bool, error) {
	var is, was bool
	var err error
	c := &e.Entry.Change
	if e.Type != services.Deleted {
		if is, err = d.matches(ctx, e.Entry, c.Object, "after"); err != nil {
			return e, false, err
		}
	}
	if e.Type != services.Added {
		if was, err = d.before(ctx, e.Entry, is); err != nil {
			return e, false, err
		}
	}
	switch {
	case is && was:
		e.Type = services.Modified
	case is:
		e.Type = services.Added
	case was:
		e.Type = services.Deleted
	}
	return e, is || was, nil
}

// before reports whether the object before a change matches; is reports whether the one
// after it does.
func (d *declared) before(ctx context.Context, entry *feed.Entry, is bool) (bool, error) {
	o := entry.Object
	switch {
	case entry.Type == services.Deleted:
	case entry.OldJSON != nil:
		o.JSON = entry.OldJSON
	case typesystem.RecordsChanges(o.Fields, d.of):
		return is, nil // it has not changed
	default:
		return false, services.Expired("too old resource version: %d (the fields of the selector are known since later)", o.Revision)
	}
	o.UID, o.Fields, o.Revision = "", nil, 0 // when this state was written is unknown
	return d.matches(ctx, entry, o, "before")
}

// matches reports whether a state of an object matches. Its fields are read once for all
// watchers.
func (d *declared) matches(ctx context.Context, entry *feed.Entry, o services.Object, when string) (bool, error) {
	form := fmt.Sprint("fields ", when, " ", d.of.APIVersion(), d.of.Since, d.of.Selectable)
	raw, err := entry.Encoded(form, func() ([]byte, error) {
		values, err := d.engine.FieldsOf(ctx, []services.Object{o}, d.of)
		if err != nil {
			return nil, err
		}
		return json.Marshal(values[0])
	})
	if err != nil {
		return false, err
	}
	var values map[string]string
	if err := json.Unmarshal(raw, &values); err != nil {
		return false, err
	}
	return d.selector.Matches(o.Key, nil, values), nil
}
