package frontdoor

import (
	"net/url"
	"strconv"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// readOptions are the parsed query parameters of get, list and watch (sections
// "Query parameters" and "Read consistency").
type readOptions struct {
	revision      int64 // of resourceVersion; 0 for "0" and unset
	hasVersion    bool  // resourceVersion is set, perhaps to "0"
	match         string
	limit         int
	token         string // continue
	labelSelector string
	fieldSelector string
	selector      resource.Selector

	bookmarks     bool
	initialEvents *bool
	timeout       time.Duration // 0 when the client leaves it to the server
}

const (
	matchExact        = "Exact"
	matchNotOlderThan = "NotOlderThan"
)

// parseReadOptions reads the parameters and refuses what is malformed, naming the
// parameter (400).
func parseReadOptions(q url.Values, t *catalogue.Type) (readOptions, error) {
	o := readOptions{
		match: q.Get("resourceVersionMatch"), token: q.Get("continue"),
		labelSelector: q.Get("labelSelector"), fieldSelector: q.Get("fieldSelector"),
	}
	var err error
	version := q.Get("resourceVersion")
	o.hasVersion = version != ""
	if o.revision, err = resource.ParseVersion(version); err != nil {
		return o, services.BadRequest("resourceVersion: Invalid value: %q: %v", version, err)
	}
	if o.limit, err = intOption(q, "limit"); err != nil {
		return o, err
	}
	seconds, err := intOption(q, "timeoutSeconds")
	if err != nil {
		return o, err
	}
	o.timeout = time.Duration(seconds) * time.Second
	if o.bookmarks, err = boolOption(q, "allowWatchBookmarks"); err != nil {
		return o, err
	}
	if q.Has("sendInitialEvents") {
		send, err := boolOption(q, "sendInitialEvents")
		if err != nil {
			return o, err
		}
		o.initialEvents = &send
	}
	if o.selector, err = resource.ParseSelector(o.labelSelector, o.fieldSelector); err != nil {
		return o, services.BadRequest("%s", selectorError(o, err))
	}
	return o, checkFields(o.selector, t)
}

// selectorError says which of the two selectors does not parse.
func selectorError(o readOptions, err error) string {
	if _, labels := resource.ParseSelector(o.labelSelector, ""); labels != nil {
		return "labelSelector: Invalid value: " + strconv.Quote(o.labelSelector) + ": " + err.Error()
	}
	return "fieldSelector: Invalid value: " + strconv.Quote(o.fieldSelector) + ": " + err.Error()
}

// checkFields refuses field selectors that the type does not know.
func checkFields(s resource.Selector, t *catalogue.Type) error {
	for _, name := range s.FieldNames() {
		if name == "metadata.name" || name == "metadata.namespace" {
			continue
		}
		known := false
		for _, f := range t.Selectable {
			known = known || f.Name == name
		}
		if !known {
			return services.BadRequest("fieldSelector: %q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"%s", name, selectable(t))
		}
	}
	return nil
}

func selectable(t *catalogue.Type) (list string) {
	for _, f := range t.Selectable {
		list += ", " + strconv.Quote(f.Name)
	}
	return list
}

func intOption(q url.Values, name string) (int, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, services.BadRequest("%s: Invalid value: %q: must be a non-negative integer", name, text)
	}
	return n, nil
}

func boolOption(q url.Values, name string) (bool, error) {
	text := q.Get(name)
	if text == "" {
		return q.Has(name) && name == "pretty", nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, services.BadRequest("%s: Invalid value: %q: must be true or false", name, text)
	}
	return b, nil
}

// getRead is the "Get" table of section "Read consistency".
func (o readOptions) getRead() services.Read {
	switch {
	case !o.hasVersion:
		return services.Read{Mode: services.MostRecent}
	case o.revision == 0:
		return services.Read{Mode: services.AnyRevision}
	}
	return services.Read{Mode: services.NotOlderThan, Revision: o.revision}
}

// listRead is the "List" table of section "Read consistency", without continue
// tokens: those carry their own revision. Invalid cells are 400 and name the field.
func (o readOptions) listRead() (services.Read, error) {
	switch o.match {
	case "":
		if o.hasVersion && o.revision != 0 && o.limit > 0 {
			return services.Read{Mode: services.Exact, Revision: o.revision}, nil
		}
		return o.getRead(), nil
	case matchExact:
		if o.revision == 0 {
			return services.Read{}, services.BadRequest("resourceVersionMatch: Forbidden: resourceVersionMatch \"Exact\" is forbidden for resourceVersion unset or \"0\"")
		}
		return services.Read{Mode: services.Exact, Revision: o.revision}, nil
	case matchNotOlderThan:
		if !o.hasVersion {
			return services.Read{}, services.BadRequest("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")
		}
		return o.getRead(), nil
	}
	return services.Read{}, services.BadRequest("resourceVersionMatch: Unsupported value: %q: supported values: \"Exact\", \"NotOlderThan\"", o.match)
}
