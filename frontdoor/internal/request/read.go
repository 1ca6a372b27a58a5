package request

import (
	"net/url"
	"strconv"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// ReadOptions are the parsed query parameters of get, list and watch (sections
// "Query parameters" and "Read consistency").
type ReadOptions struct {
	Revision      int64 // of resourceVersion; 0 for "0" and unset
	HasVersion    bool  // resourceVersion is set, perhaps to "0"
	Match         string
	Limit         int
	Token         string // continue
	LabelSelector string
	FieldSelector string
	Selector      resource.Selector

	Bookmarks     bool
	InitialEvents *bool
	Timeout       time.Duration // 0 when the client leaves it to the server
}

// Values of resourceVersionMatch.
const (
	MatchExact        = "Exact"
	MatchNotOlderThan = "NotOlderThan"
)

// ParseReadOptions reads the parameters and refuses what is malformed, naming the
// parameter (400).
func ParseReadOptions(q url.Values, t *catalogue.Type) (ReadOptions, error) {
	o := ReadOptions{
		Match: q.Get("resourceVersionMatch"), Token: q.Get("continue"),
		LabelSelector: q.Get("labelSelector"), FieldSelector: q.Get("fieldSelector"),
	}
	var err error
	version := q.Get("resourceVersion")
	o.HasVersion = version != ""
	if o.Revision, err = resource.ParseVersion(version); err != nil {
		return o, services.BadRequest("resourceVersion: Invalid value: %q: %v", version, err)
	}
	if o.Limit, err = intOption(q, "limit"); err != nil {
		return o, err
	}
	seconds, err := intOption(q, "timeoutSeconds")
	if err != nil {
		return o, err
	}
	o.Timeout = time.Duration(seconds) * time.Second
	if o.Bookmarks, err = boolOption(q, "allowWatchBookmarks"); err != nil {
		return o, err
	}
	if q.Has("sendInitialEvents") {
		send, err := boolOption(q, "sendInitialEvents")
		if err != nil {
			return o, err
		}
		o.InitialEvents = &send
	}
	if o.Selector, err = resource.ParseSelector(o.LabelSelector, o.FieldSelector); err != nil {
		return o, services.BadRequest("%s", selectorError(o, err))
	}
	return o, checkFields(o.Selector, t)
}

// selectorError says which of the two selectors does not parse.
func selectorError(o ReadOptions, err error) string {
	if _, labels := resource.ParseSelector(o.LabelSelector, ""); labels != nil {
		return "labelSelector: Invalid value: " + strconv.Quote(o.LabelSelector) + ": " + err.Error()
	}
	return "fieldSelector: Invalid value: " + strconv.Quote(o.FieldSelector) + ": " + err.Error()
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

// GetRead is the "Get" table of section "Read consistency".
func (o ReadOptions) GetRead() services.Read {
	switch {
	case !o.HasVersion:
		return services.Read{Mode: services.MostRecent}
	case o.Revision == 0:
		return services.Read{Mode: services.AnyRevision}
	}
	return services.Read{Mode: services.NotOlderThan, Revision: o.Revision}
}

// ListRead is the "List" table of section "Read consistency", without continue
// tokens: those carry their own revision. Invalid cells are 400 and name the field.
func (o ReadOptions) ListRead() (services.Read, error) {
	switch o.Match {
	case "":
		if o.HasVersion && o.Revision != 0 && o.Limit > 0 {
			return services.Read{Mode: services.Exact, Revision: o.Revision}, nil
		}
		return o.GetRead(), nil
	case MatchExact:
		if o.Revision == 0 {
			return services.Read{}, services.BadRequest("resourceVersionMatch: Forbidden: resourceVersionMatch \"Exact\" is forbidden for resourceVersion unset or \"0\"")
		}
		return services.Read{Mode: services.Exact, Revision: o.Revision}, nil
	case MatchNotOlderThan:
		if !o.HasVersion {
			return services.Read{}, services.BadRequest("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")
		}
		return o.GetRead(), nil
	}
	return services.Read{}, services.BadRequest("resourceVersionMatch: Unsupported value: %q: supported values: \"Exact\", \"NotOlderThan\"", o.Match)
}
