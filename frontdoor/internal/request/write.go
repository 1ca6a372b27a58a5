package request

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/merge"
	"github.com/portico-platform/portico/frontdoor/internal/schema"
	"github.com/portico-platform/portico/services"
)

// WriteOptions are the parsed query parameters of a write (section "Query
// parameters").
type WriteOptions struct {
	DryRun          bool
	Manager         string // the parameter fieldManager
	Force           bool
	FieldValidation schema.FieldValidation
}

// ParseWriteOptions reads the parameters and refuses what is malformed (400 or
// 422), naming the parameter.
func ParseWriteOptions(r *Request) (o WriteOptions, err error) {
	if o.DryRun, err = ParseDryRun(r.Query["dryRun"]); err != nil {
		return o, err
	}
	o.Manager = r.Query.Get("fieldManager")
	if err := merge.CheckManager(o.Manager); err != nil {
		return o, err
	}
	if o.Force, err = boolOption(r.Query, "force"); err != nil {
		return o, err
	}
	o.FieldValidation, err = parseFieldValidation(r.Query.Get("fieldValidation"))
	return o, err
}

// parseFieldValidation reads what becomes of unknown fields; they are warned of
// when the client does not say.
func parseFieldValidation(value string) (schema.FieldValidation, error) {
	switch v := schema.FieldValidation(value); v {
	case "":
		return schema.Warn, nil
	case schema.Ignore, schema.Warn, schema.Strict:
		return v, nil
	}
	return "", services.Invalid("", "Options", "", []services.StatusCause{{Reason: services.CauseNotSupported,
		Field: "fieldValidation", Message: "Unsupported value: " + strconv.Quote(value) + ": supported values: \"Ignore\", \"Strict\", \"Warn\""}})
}

// ParseDryRun reads the values of dryRun: All or nothing (section "Dry-run").
func ParseDryRun(values []string) (bool, error) {
	for _, v := range values {
		if v != "All" && v != "" {
			return false, services.Invalid("", "Options", "", []services.StatusCause{{Reason: services.CauseNotSupported,
				Field: "dryRun", Message: "Unsupported value: " + strconv.Quote(v) + ": supported values: \"All\""}})
		}
	}
	return len(values) > 0 && values[0] == "All", nil
}

// BodyLimit is the largest body that is read.
const BodyLimit = 3 << 20

// ReadBody reads the whole body; RequestEntityTooLarge (413) beyond the limit.
func (r *Request) ReadBody(w http.ResponseWriter) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, BodyLimit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, services.TooLarge("Request entity too large: limit is %d", BodyLimit)
	}
	if err != nil {
		return nil, services.BadRequest("the body of the request could not be read: %v", err)
	}
	return body, nil
}

// MediaType returns the Content-Type without its parameters.
func (r *Request) MediaType() string {
	header := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return media
}
