package wire

import (
	"cmp"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
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
	form, ok := c.accepted(r.Header.Values("Accept"), t, what)
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
	form.ContentType = mediaType(form.Media, c.vocabulary)
	if what == Watch && form.Media != JSON {
		form.ContentType += ";stream=watch"
	}
	return form, nil
}

// accepted returns the first possible form; Pretty is set if the header requests it.
func (c *Codec) accepted(header []string, t *catalogue.Type, what What) (Form, bool) {
	accept := strings.Join(header, ",")
	if accept == "" || accept == mediaJSON || accept == "*/*" {
		return Form{}, true
	}
	for _, element := range parseAccept(accept) {
		if form, ok := c.formFor(element, t, what); ok {
			return form, true
		}
	}
	return Form{}, false
}

// formFor returns the form for one media range of an Accept header, if it is possible.
func (c *Codec) formFor(element mediaRange, t *catalogue.Type, what What) (Form, bool) {
	form := Form{Pretty: element.params["pretty"] == "1"}
	switch element.media {
	case mediaJSON, "application/*", "*/*":
	case mediaYAML:
		form.Media = YAML
	case c.vocabulary.Protobuf:
		form.Media = Protobuf
	default:
		return Form{}, false
	}
	if stream, ok := element.params["stream"]; ok && stream != "watch" {
		return Form{}, false
	}
	if kind, ok := element.params["as"]; ok {
		if form.As, ok = shownAs(kind, t, what); !ok {
			return Form{}, false
		}
		if form.MetaVersion = element.params["v"]; element.params["g"] != c.metaGroup || form.MetaVersion != "v1" && form.MetaVersion != "v1beta1" {
			return Form{}, false
		}
	}
	return form, c.serves(form, t, what)
}

func shownAs(kind string, t *catalogue.Type, what What) (As, bool) {
	switch {
	case t == nil:
	case kind == kindTable:
		return Table, !t.Virtual
	case kind == kindPartial && what != List, kind == kindPartialList && what == List:
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
	}
	return true
}

func (c *Codec) notAcceptable(t *catalogue.Type, what What) error {
	var media []string
	for _, m := range []Media{JSON, YAML, Protobuf} {
		if c.serves(Form{Media: m}, t, what) {
			media = append(media, mediaType(m, c.vocabulary))
		}
	}
	return &services.Status{Code: http.StatusNotAcceptable, Reason: services.ReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join(media, ", ")}
}

func mediaType(m Media, names vocabulary.Vocabulary) string {
	switch m {
	case YAML:
		return mediaYAML
	case Protobuf:
		return names.Protobuf
	}
	return mediaJSON
}

// mediaRange is one element of an Accept header.
type mediaRange struct {
	media  string
	params map[string]string
	weight float64
}

// parseAccept returns the elements of an Accept header, preferred ones first. It skips
// invalid elements and those with weight zero.
func parseAccept(header string) []mediaRange {
	var ranges []mediaRange
	for element := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := params["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		if weight > 0 {
			ranges = append(ranges, mediaRange{media, params, weight})
		}
	}
	slices.SortStableFunc(ranges, func(a, b mediaRange) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Count(a.media, "*")-strings.Count(b.media, "*"))
	})
	return ranges
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
	return 0, services.BadRequest("invalid includeObject %q: must be None, Metadata or Object", value)
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
