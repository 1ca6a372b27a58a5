package request

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
)

// ReadOptions holds the parsed query parameters of get, list and watch (sections "Query
// parameters" and "Read consistency").
type ReadOptions struct {
	Revision      int64 // of resourceVersion; 0 for "0" and unset
	HasVersion    bool  // resourceVersion is set, possibly to "0"
	Match         string
	Limit         int64  // 0 if unlimited
	Token         string // the parameter continue
	LabelSelector string
	FieldSelector string
	Selector      resource.Selector

	Bookmarks     bool
	InitialEvents *bool
	Timeout       time.Duration // 0 if unset, negative if it is over at once
}

// Values of resourceVersionMatch.
const (
	MatchExact        = "Exact"
	MatchNotOlderThan = "NotOlderThan"
)

// ParseReadOptions parses the parameters of a list, watch or deletecollection. It returns
// BadRequest (400) if one is malformed or they contradict each other.
func ParseReadOptions(r *Request) (ReadOptions, error) {
	q := r.Query
	version := q.Get("resourceVersion")
	o := ReadOptions{
		Match: q.Get("resourceVersionMatch"), Token: q.Get("continue"), HasVersion: version != "",
		LabelSelector: q.Get("labelSelector"), FieldSelector: q.Get("fieldSelector"), Bookmarks: BoolOption(q, "allowWatchBookmarks"),
	}
	limit, err := intOption(q, "limit")
	if err != nil {
		return o, err
	}
	o.Limit = max(limit, 0)
	seconds, err := intOption(q, "timeoutSeconds")
	if err != nil {
		return o, err
	}
	o.Timeout = time.Duration(max(-1, min(seconds, int64(math.MaxInt64/time.Second)))) * time.Second
	if q.Has("sendInitialEvents") {
		send := BoolOption(q, "sendInitialEvents")
		o.InitialEvents = &send
	}
	if o.FieldSelector, err = r.ofDefinition(o.FieldSelector); err != nil {
		return o, err
	}
	if o.Selector, err = resource.ParseSelector(o.LabelSelector, o.FieldSelector); err != nil {
		return o, services.BadRequest("%v", err)
	}
	if err := checkFields(o.Selector, r.Type); err != nil {
		return o, err
	}
	if o, err = o.ofStored(r.Type); err != nil {
		return o, err
	}
	causes := o.listCauses(version)
	if r.Verb == "watch" {
		if later := !r.Engine.Types.Release().Before(release.V136); later && BoolOption(q, "watch") {
			o.defaultInitialEvents(version)
		}
		causes = o.watchCauses()
	}
	if len(causes) > 0 {
		refused := r.invalidOptions("ListOptions", causes)
		refused.Code, refused.Reason = http.StatusBadRequest, services.ReasonBadRequest // as in the tables of the specification
		return o, refused
	}
	if o.Token != "" && version != "" && version != "0" {
		return o, services.BadRequest("specifying resource version is not allowed when using continue")
	}
	o.Revision, err = parseVersion(version)
	return o, err
}

// ofDefinition removes the requirement on the UID of a custom type's definition from a
// field selector. It returns Conflict (409) if the path serves another definition. For a
// built-in type the requirement stays, and is rejected like any unsupported field.
func (r *Request) ofDefinition(selector string) (string, error) {
	first, rest, _ := strings.Cut(selector, ",")
	uid, ok := strings.CutPrefix(first, resource.DefinitionUID+"=")
	if !ok || !r.Type.Custom {
		return selector, nil
	}
	if uid != r.Type.DefinitionUID {
		return "", services.Conflict(r.Type.Group, r.Type.Resource, "", "the UID of the definition in the request is "+strconv.Quote(uid)+
			", and the type is defined by "+strconv.Quote(r.Type.DefinitionUID))
	}
	return rest, nil
}

// ParseGetOptions parses the parameters of a get. It returns BadRequest (400) for the export of
// an object, which a client must not take for one.
func ParseGetOptions(q url.Values) (o ReadOptions, err error) {
	if BoolOption(q, "export") {
		return o, services.BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	version := q.Get("resourceVersion")
	o.HasVersion = version != ""
	o.Revision, err = parseVersion(version)
	return o, err
}

func parseVersion(version string) (int64, error) {
	revision, err := resource.ParseVersion(version)
	if err != nil {
		return 0, services.BadRequest("invalid resource version: resourceVersion: Invalid value: %q: %v", version, err)
	}
	return revision, nil
}

const (
	fieldMatch    = "resourceVersionMatch"
	besidesTokens = fieldMatch + " is forbidden when continue is provided"
)

// listCauses returns the errors of contradicting parameters of a list.
func (o ReadOptions) listCauses(version string) (causes []services.StatusCause) {
	if o.InitialEvents != nil {
		causes = append(causes, forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
	}
	if o.Match == "" {
		return causes
	}
	if version == "" {
		causes = append(causes, forbidden(fieldMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
	}
	if o.Token != "" {
		causes = append(causes, forbidden(fieldMatch, besidesTokens))
	}
	if o.Match != MatchExact && o.Match != MatchNotOlderThan {
		causes = append(causes, notSupported(fieldMatch, strconv.Quote(o.Match), MatchExact, MatchNotOlderThan, ""))
	}
	if o.Match == MatchExact && version == "0" {
		causes = append(causes, forbidden(fieldMatch, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
	}
	return causes
}

// defaultInitialEvents makes a watch that begins with the existing objects anyway one that requires
// them, so that it has a bookmark after the last of them.
func (o *ReadOptions) defaultInitialEvents(version string) {
	if o.Match == "" && o.InitialEvents == nil && (version == "" || version == "0") {
		send := true
		o.InitialEvents, o.Match = &send, MatchNotOlderThan
	}
}

// watchCauses returns the errors of contradicting parameters of a watch.
func (o ReadOptions) watchCauses() (causes []services.StatusCause) {
	if o.InitialEvents != nil && o.Match != MatchNotOlderThan {
		causes = append(causes, forbidden(fieldMatch, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	}
	if o.InitialEvents == nil && o.Match != "" {
		causes = append(causes, forbidden(fieldMatch, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	}
	if o.Match != "" && o.Match != MatchNotOlderThan {
		causes = append(causes, notSupported(fieldMatch, strconv.Quote(o.Match), MatchNotOlderThan))
	}
	if o.Token != "" && o.Match != "" {
		causes = append(causes, forbidden(fieldMatch, besidesTokens))
	}
	return causes
}

// checkFields refuses field selectors that the type does not support. Types in no
// namespace that have fields of their own, and custom ones, do not have the namespace.
func checkFields(s resource.Selector, t *catalogue.Type) error {
	for _, name := range s.FieldNames() {
		known := name == "metadata.name" || name == "metadata.namespace" && (t.Namespaced || len(t.Selectable) == 0 && !t.Custom)
		for _, f := range t.Selectable {
			known = known || f.Name == name
		}
		switch {
		case known:
		case len(t.Selectable) > 0 || t.Custom:
			return services.BadRequest("field label not supported: %s", name)
		default:
			return services.BadRequest("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", name)
		}
	}
	return nil
}

// ofStored gives the fields of the selector the names under which the type in the storage
// version records them: those of events differ between their groups.
func (o ReadOptions) ofStored(t *catalogue.Type) (ReadOptions, error) {
	names := t.RecordedNames()
	if o.FieldSelector == "" || len(names) == 0 {
		return o, nil
	}
	parsed, err := ledger.ParseFields(o.FieldSelector)
	if err != nil {
		return o, services.BadRequest("%v", err)
	}
	requirements := parsed.Requirements()
	for i, each := range requirements {
		requirements[i].Field = cmp.Or(names[each.Field], each.Field)
	}
	o.FieldSelector = resource.FieldSelectorOf(requirements)
	if o.Selector, err = resource.ParseSelector(o.LabelSelector, o.FieldSelector); err != nil {
		return o, services.BadRequest("%v", err)
	}
	return o, nil
}

// intOption parses a number. The parameter may be absent but not empty.
func intOption(q url.Values, name string) (int64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil {
		return 0, services.BadRequest("%v", err)
	}
	return n, nil
}

// BoolOption parses a flag: any value but false and 0 is true.
func BoolOption(q url.Values, name string) bool {
	return q.Has(name) && q.Get(name) != "0" && !strings.EqualFold(q.Get(name), "false")
}

// Synthetic reports whether a watch begins with the existing objects.
func (o ReadOptions) Synthetic() bool {
	if o.InitialEvents != nil {
		return *o.InitialEvents
	}
	return !o.HasVersion || o.Revision == 0
}

// GetRead implements the "Get" table of section "Read consistency".
func (o ReadOptions) GetRead() services.Read {
	switch {
	case !o.HasVersion:
		return services.Read{Mode: services.MostRecent}
	case o.Revision == 0:
		return services.Read{Mode: services.AnyRevision}
	}
	return services.Read{Mode: services.NotOlderThan, Revision: o.Revision}
}

// ListRead implements the "List" table of section "Read consistency", without the
// invalid cells and without continue tokens, which carry their own revision.
func (o ReadOptions) ListRead() services.Read {
	if o.Match == MatchExact || o.Match == "" && o.Revision != 0 && o.Limit > 0 {
		return services.Read{Mode: services.Exact, Revision: o.Revision}
	}
	return o.GetRead()
}
