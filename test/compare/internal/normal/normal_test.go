package normal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

const document = `{"definitions":{
	"pod":{"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Pod"}],"properties":{
		"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},"spec":{"$ref":"#/definitions/spec"}}},
	"spec":{"properties":{"old":{"type":"string"},"list":{"type":"array","items":{"$ref":"#/definitions/spec"}},"nodePort":{"type":"integer"}}}}}`

func tree(t *testing.T, contentType, body string) string {
	t.Helper()
	d, err := openapi.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	normalised, _ := NewNames(d).Tree("step", Answer{Code: 200, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body)})
	content, err := json.Marshal(normalised["body"])
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestGeneratedValuesAreNormalised(t *testing.T) {
	now := time.Now().UTC()
	body := func(uid, version, at, more string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"uid":%q,"resourceVersion":%q,"creationTimestamp":%q,
			"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{"f:old":{}%s}}}]},"spec":{"old":"x","list":[{"old":"y"}]}}`, uid, version, at, more)
	}
	a := tree(t, "application/json", body("12345678-1234-1234-1234-123456789012", "5", now.Format(time.RFC3339), `,"f:new":{}`))
	b := tree(t, "application/json; charset=utf-8", body("02345678-1234-1234-1234-123456789012", "77", now.Add(time.Minute).Format(time.RFC3339), ""))
	if a != b {
		t.Errorf("not the same:\n%s\n%s", a, b)
	}
}

func TestOtherDifferencesRemain(t *testing.T) {
	pod := func(spec string) string { return `{"kind":"Pod","apiVersion":"v1","spec":` + spec + `}` }
	for name, pair := range map[string][2]string{
		"a field":          {pod(`{"old":"x"}`), pod(`{}`)},
		"a value":          {pod(`{"old":"x"}`), pod(`{"old":"y"}`)},
		"a fixed time":     {pod(`{"old":"2021-04-08T01:02:03Z"}`), pod(`{"old":"2021-04-08T01:02:04Z"}`)},
		"a second uid":     {pod(`{"list":[{"old":"12345678-1234-1234-1234-123456789012"},{"old":"02345678-1234-1234-1234-123456789012"}]}`), pod(`{"list":[{"old":"12345678-1234-1234-1234-123456789012"},{"old":"12345678-1234-1234-1234-123456789012"}]}`)},
		"a requested port": {pod(`{"nodePort":30999}`), pod(`{"nodePort":30998}`)},
		"a cause":          {`{"kind":"Status","details":{"causes":[{"field":"a","reason":"R"}]}}`, `{"kind":"Status","details":{"causes":[{"field":"b","reason":"R"}]}}`},
		"one more cause":   {`{"kind":"Status","details":{"causes":[{"field":"a","reason":"R"}]}}`, `{"kind":"Status","details":{"causes":[{"field":"a","reason":"R"},{"field":"a","reason":"R","message":"m"}]}}`},
	} {
		if a, b := tree(t, "application/json", pair[0]), tree(t, "application/json", pair[1]); a == b {
			t.Errorf("%s: both are %s", name, a)
		}
	}
}

func TestCausesHaveNoOrder(t *testing.T) {
	one, other := `{"field":"a","reason":"R","message":"m"}`, `{"field":"b","reason":"R","message":"m"}`
	status := func(causes string) string {
		return `{"kind":"Status","reason":"Invalid","message":` + fmt.Sprintf("%q", causes) + `,"details":{"causes":[` + causes + `]}}`
	}
	if a, b := tree(t, "application/json", status(one+","+other)), tree(t, "application/json", status(other+","+one)); a != b {
		t.Errorf("not the same:\n%s\n%s", a, b)
	}
}

func TestNewerFieldsAreRemoved(t *testing.T) {
	got := tree(t, "application/json", `{"kind":"Pod","apiVersion":"v1","spec":{"old":"x","new":"y","list":[{"new":1}]}}`)
	if want := `{"apiVersion":"v1","kind":"Pod","spec":{"list":[{}],"old":"x"}}`; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
}

func TestEventsOfWatch(t *testing.T) {
	got := tree(t, "application/json", `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","spec":{"new":1}}}
{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1"}}`)
	if want := `[{"object":{"apiVersion":"v1","kind":"Pod","spec":{}},"type":"ADDED"},{"object":{"apiVersion":"v1","kind":"Pod"},"type":"DELETED"}]`; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
}

func TestSharedParametersAreInPlace(t *testing.T) {
	body := func(hash, name string) string {
		return fmt.Sprintf(`{"swagger":"2.0","parameters":{"limit%s":{"name":%q,"in":"query"}},"paths":{"/a":{"parameters":[{"$ref":"#/parameters/limit%s"}]}}}`, hash, name, hash)
	}
	a := tree(t, "application/json", body("-1NfNmdNH", "limit"))
	if b := tree(t, "application/json", body("-_fNm-dNH", "limit")); a != b {
		t.Errorf("not the same:\n%s\n%s", a, b)
	}
	for other, b := range map[string]string{
		"the name of a parameter": body("-1NfNmdNH", "other"),
		"that it is shared":       `{"swagger":"2.0","parameters":{},"paths":{"/a":{"parameters":[{"name":"limit","in":"query"}]}}}`,
	} {
		if tree(t, "application/json", b) == a {
			t.Errorf("%s makes no difference", other)
		}
	}
}
