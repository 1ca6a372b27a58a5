package request

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/managers"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/services"
)

// WriteOptions holds the parsed query parameters of a write (section "Query
// parameters").
type WriteOptions struct {
	DryRun          bool
	Manager         string // the parameter fieldManager
	Force           bool
	FieldValidation schema.FieldValidation
}

// ParseWriteOptions parses the parameters. The error (422) names each malformed one.
func ParseWriteOptions(r *Request) (WriteOptions, error) {
	q := r.Query
	o := WriteOptions{DryRun: DryRun(q["dryRun"]), Manager: q.Get("fieldManager"), Force: BoolOption(q, "force")}
	var causes []services.StatusCause
	if r.Verb == "patch" {
		causes = patchCauses(q, r.MediaType())
	}
	causes = append(causes, managers.Check(o.Manager)...)
	causes = append(causes, dryRunCauses(q["dryRun"])...)
	switch o.FieldValidation = schema.FieldValidation(q.Get("fieldValidation")); o.FieldValidation {
	case "": // the default is to warn about unknown fields
		o.FieldValidation = schema.Warn
	case schema.Ignore, schema.Warn, schema.Strict:
	default:
		causes = append(causes, notSupported("fieldValidation", strconv.Quote(string(o.FieldValidation)),
			"", string(schema.Ignore), string(schema.Strict), string(schema.Warn)))
	}
	if len(causes) > 0 {
		return o, r.invalidOptions(r.OptionsKind(), causes)
	}
	return o, nil
}

// MediaTypeApplyCBOR is that of an apply whose body is CBOR. Handlers make it one of
// fieldmanager.MediaTypeApply.
const MediaTypeApplyCBOR = "application/apply-patch+cbor"

// patchCauses checks what depends on the patch type: only apply accepts force, and
// apply requires a field manager.
func patchCauses(q url.Values, mediaType string) []services.StatusCause {
	applies := mediaType == fieldmanager.MediaTypeApply || mediaType == MediaTypeApplyCBOR
	switch {
	case applies && q.Get("fieldManager") == "":
		return []services.StatusCause{{Reason: services.CauseRequired, Field: "fieldManager", Message: "Required value: is required for apply patch"}}
	case !applies && q.Has("force"):
		return []services.StatusCause{forbidden("force", "may not be specified for non-apply patch")}
	}
	return nil
}

// DryRun reports whether the values of dryRun request a dry-run.
func DryRun(values []string) bool { return slices.Contains(values, "All") }

// dryRunCauses allows only the value All for dryRun. An empty value is none of it: the client means a dry-run.
func dryRunCauses(values []string) []services.StatusCause {
	if !slices.ContainsFunc(values, func(v string) bool { return v != "All" }) {
		return nil
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	return []services.StatusCause{notSupported("dryRun", "["+strings.Join(quoted, ",")+"]", "All")}
}

// MediaType returns the Content-Type without its parameters, unnormalized.
func (r *Request) MediaType() string {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}
