package request

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestWriteOptions: each malformed option is a cause, independent of the others.
func TestWriteOptions(t *testing.T) {
	e := &typesystem.Engine{Merge: fieldmanager.New(fieldmanager.Options{Vocabulary: vocabulary.K8s()})}
	for _, c := range []struct{ verb, media, query, fields string }{
		{"create", "", "", ""},
		{"create", "", "force=true&dryRun=All&fieldManager=m&fieldValidation=Strict", ""},
		{"create", "", "dryRun=", "dryRun"},
		{"create", "", "dryRun", "dryRun"},
		{"create", "", "dryRun=All&dryRun=All", ""},
		{"create", "", "dryRun=All&dryRun=", "dryRun"},
		{"create", "", "dryRun=all", "dryRun"},
		{"update", "", "dryRun=All&dryRun=Some", "dryRun"},
		{"update", "", "fieldValidation=Bad", "fieldValidation"},
		{"update", "", "fieldManager=" + strings.Repeat("x", 129), "fieldManager"},
		{"update", "", "fieldManager=a%07", "fieldManager"},
		{"patch", fieldmanager.MediaTypeMerge, "force=false", "force"},
		{"patch", fieldmanager.MediaTypeApply, "force=true&fieldManager=m", ""},
		{"patch", fieldmanager.MediaTypeApply + "; charset=utf-8", "dryRun=no", "fieldManager dryRun"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header.Set("Content-Type", c.media)
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseWriteOptions(&Request{Request: r, Engine: e, Verb: c.verb, Query: query})
		var fields []string
		if s := (*services.Status)(nil); errors.As(err, &s) {
			for _, cause := range s.Details.Causes {
				fields = append(fields, cause.Field)
			}
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s %s ?%.60s: refused %q (%v), want %q", c.verb, c.media, c.query, got, err, c.fields)
		}
	}
}
