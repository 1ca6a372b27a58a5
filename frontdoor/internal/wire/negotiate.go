package wire

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/accept"
	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"

	kindTable       = "Table"
	kindPartial     = "PartialObjectMetadata"
	kindPartialList = "PartialObjectMetadataList"
)

// Negotiate returns the preferred form that the Accept header allows. Among equal weights,
// specific media ranges precede wildcards, and then the order in the header counts. The
// type is nil for responses that are not objects of the catalogue. It returns NotAcceptable
// (406) if no form is possible, and BadRequest (400) for an invalid includeObject.
func (c *Codec) Negotiate(r *http.Request, t *catalogue.Type, what What) (Form, error) {
	var query url.Values
	if r.URL.RawQuery != "" {
		query = r.URL.Query()
	}
	header := ledger.HeaderList(r.Header, "Accept")
	form, ok := c.accepted(header, t, what)
	if named := c.representations(t, what); named != nil && header != "" && !accept.Names(header, c.withOther(named)) {
		return Form{}, &services.Status{Code: http.StatusNotAcceptable, Reason: services.ReasonNotAcceptable, Details: &services.StatusDetails{},
			Message: "406: Not Acceptable\n\nAvailable representations: " + strings.Join(named, ", ")}
	}
	if !ok {
		return Form{}, c.notAcceptable(t, what)
	}
	if form.As == Table {
		var err error
		if form.Include, err = parseInclude(query.Get("includeObject")); err != nil {
			return Form{}, err
		}
	}
	form.Pretty = form.Media == JSON && what != Watch && (form.Pretty || WantsPretty(r, query))
	form.ContentType = cmp.Or(form.ContentType, mediaType(form.Media, c.vocabulary))
	switch {
	case what != Watch || form.Media == JSON:
	case form.Media == CBOR:
		form.ContentType = cbor.Sequence
	default:
		form.ContentType += ";stream=watch"
	}
	return form, nil
}

// accepted returns the first possible form; Pretty is set if the header requests it.
func (c *Codec) accepted(header string, t *catalogue.Type, what What) (Form, bool) {
	if header == "" || header == mediaJSON || header == "*/*" {
		return Form{}, true
	}
	for _, element := range accept.Parse(header) {
		if form, ok := c.formFor(element, t, what); ok {
			return form, true
		}
	}
	return Form{}, false
}

// formFor returns the form for one media range of an Accept header, if it is possible.
func (c *Codec) formFor(element accept.Range, t *catalogue.Type, what What) (Form, bool) {
	form := Form{Pretty: element.Params["pretty"] == "1"}
	switch element.Media {
	case mediaJSON, "application/*", "*/*":
	case mediaYAML:
		form.Media = YAML
	case c.vocabulary.Protobuf, c.standardProtobuf:
		form.Media, form.ContentType = Protobuf, element.Media
	case cbor.Media:
		form.Media = CBOR
	default:
		return Form{}, false
	}
	if stream, ok := element.Params["stream"]; ok && stream != "watch" {
		return Form{}, false
	}
	kind, ok := element.Params["as"]
	_, grouped := element.Params["g"]
	_, versioned := element.Params["v"]
	if ok || grouped || versioned {
		if form.As, ok = shownAs(kind, t, what, !c.release.Before(release.V136)); !ok {
			return Form{}, false
		}
		if form.MetaVersion = element.Params["v"]; element.Params["g"] != c.metaGroup || form.MetaVersion != "v1" && form.MetaVersion != "v1beta1" {
			return Form{}, false
		}
	}
	return form, c.serves(form, t, what)
}

func shownAs(kind string, t *catalogue.Type, what What, later bool) (As, bool) {
	switch {
	case t == nil:
	case kind == kindTable:
		return Table, !t.Virtual
	case kind == kindPartial && what != List, kind == kindPartialList && what == List, kind == kindPartialList && what == Watch && later:
		return Partial, true
	}
	return Whole, false
}

// serves reports whether a form is possible for a type: there are no YAML watches, no
// Tables in Protobuf, and no Protobuf of types without messages, except for partial
// metadata, which all types have.
func (c *Codec) serves(form Form, t *catalogue.Type, what What) bool {
	switch form.Media {
	case YAML:
		return what != Watch
	case Protobuf:
		return form.As == Partial || form.As == Whole && t != nil && c.messages.Knows(kindOf(t))
	case CBOR:
		return c.cbor
	}
	return true
}

func (c *Codec) notAcceptable(t *catalogue.Type, what What) error {
	return &services.Status{Code: http.StatusNotAcceptable, Reason: services.ReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(c.media(t, what), ", ")}
}

// media returns the media types of whole objects.
func (c *Codec) media(t *catalogue.Type, what What) (all []string) {
	for _, m := range []Media{JSON, YAML, Protobuf, CBOR} {
		if c.serves(Form{Media: m}, t, what) {
			all = append(all, mediaType(m, c.vocabulary))
		}
	}
	return all
}

// representations returns the media types of which a request has to name one, with any
// parameters: 1.36 requires that of all types but custom ones. nil means that any name is
// allowed.
func (c *Codec) representations(t *catalogue.Type, what What) []string {
	if t == nil || t.Custom || c.release.Before(release.V136) {
		return nil
	}
	named := c.media(t, Object)
	if what == List || what == Watch {
		named = append(named, mediaJSON+";stream=watch", c.vocabulary.Protobuf+";stream=watch")
	}
	return named
}

// isProtobuf reports whether a media type is that of Protobuf.
func (c *Codec) isProtobuf(media string) bool {
	return media == c.vocabulary.Protobuf || media == c.standardProtobuf
}

// withOther returns the media types with the other name of Protobuf, if there is one.
func (c *Codec) withOther(named []string) []string {
	if c.vocabulary.Protobuf == c.standardProtobuf {
		return named
	}
	return append(slices.Clone(named), c.standardProtobuf)
}

func mediaType(m Media, names vocabulary.Vocabulary) string {
	switch m {
	case YAML:
		return mediaYAML
	case Protobuf:
		return names.Protobuf
	case CBOR:
		return cbor.Media
	}
	return mediaJSON
}

func parseInclude(value string) (Include, error) {
	switch value {
	case "", "Metadata":
		return IncludeMetadata, nil
	case "None":
		return IncludeNone, nil
	case "Object":
		return IncludeObject, nil
	}
	return 0, services.BadRequest("Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", value)
}

// WantsPretty reports whether JSON is indented: for the query parameter pretty=true, or by
// default for browsers, curl and Wget.
func WantsPretty(r *http.Request, query url.Values) bool {
	if query.Get("pretty") != "" {
		pretty, err := strconv.ParseBool(query.Get("pretty"))
		return err == nil && pretty
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}
