package wire_test

import (
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/frontdoor/internal/wire/outcome"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestWriteStatus(t *testing.T) {
	failure := services.Invalid("apps", "Deployment", "a", []services.StatusCause{{Reason: services.CauseInvalid, Field: "spec.replicas", Message: "must not be negative"}})
	failure.Details.RetryAfterSeconds = 3
	success := &services.Status{Code: 200, Details: &services.StatusDetails{Name: "a", Kind: "configmaps", UID: "u"}}
	for _, c := range []struct {
		accept      string
		status      error
		contentType string
		want        string
	}{
		{"", failure, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Deployment.apps \"a\" is invalid: spec.replicas: must not be negative","reason":"Invalid",` +
			`"details":{"name":"a","group":"apps","kind":"Deployment","causes":[{"reason":"FieldValueInvalid","message":"must not be negative","field":"spec.replicas"}],"retryAfterSeconds":3},"code":422}` + "\n"},
		{"", &outcome.Continued{Status: services.Expired("too old"), Token: "more"}, "application/json",
			`{"kind":"Status","apiVersion":"v1","metadata":{"continue":"more"},"status":"Failure","message":"too old","reason":"Expired","code":410}` + "\n"},
		{"text/html", success, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","kind":"configmaps","uid":"u"}}` + "\n"},
		{"application/json;as=Table;g=meta.platform.io;v=v1,application/yaml", success, "application/yaml",
			"apiVersion: v1\ndetails:\n  kind: configmaps\n  name: a\n  uid: u\nkind: Status\nmetadata: {}\nstatus: Success\n"},
	} {
		w := httptest.NewRecorder()
		wire.New(wire.Config{Vocabulary: vocabulary.Platform()}).WriteStatus(w, request(c.accept, ""), c.status)
		if w.Code != int(services.AsStatus(c.status).Code) || w.Header().Get("Content-Type") != c.contentType || w.Body.String() != c.want {
			t.Errorf("%q: %d %s\n%s\nwant\n%s", c.accept, w.Code, w.Header().Get("Content-Type"), w.Body, c.want)
		}
		if got := w.Header().Get("Retry-After"); (got == "3") != (c.status == failure) {
			t.Errorf("Retry-After: %q", got)
		}
	}
	w := httptest.NewRecorder()
	wire.New(wire.Config{Vocabulary: vocabulary.Platform()}).WriteStatus(w, request("application/vnd.platform.protobuf", ""), failure)
	e, err := protobuf.OpenEnvelope(w.Body.Bytes())
	var status metav1.Status
	if err != nil || e.Kind.Kind != "Status" || status.Unmarshal(e.Raw) != nil || status.Code != 422 || status.Details.Causes[0].Field != "spec.replicas" {
		t.Errorf("%v %v %v", e, err, status)
	}
}
