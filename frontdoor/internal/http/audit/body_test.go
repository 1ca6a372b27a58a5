package audit

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

func same(body []byte) ([]byte, error) { return body, nil }

// TestBodies: bodies that are too large or not readable are left out, which the event says.
func TestBodies(t *testing.T) {
	plain := parsed(t, "rules: [{level: RequestResponse}]").Rule(services.Attributes{})
	reduced := parsed(t, "omitManagedFields: true\nrules: [{level: RequestResponse}]").Rule(services.Attributes{})
	for _, c := range []struct {
		rule       *Rule
		body, want string
		truncated  bool
	}{
		{plain, "", "", false},
		{plain, `{"a":[1]}`, `{"a":[1]}`, false},
		{plain, `{"metadata":{"managedFields":[]}}`, `{"metadata":{"managedFields":[]}}`, false},
		{plain, `{"a":`, "", true},
		{plain, "{}\n{\"kind\":\"Event\"}", "", true},
		{plain, `"` + strings.Repeat("a", MaxBody) + `"`, "", true},
		{reduced, `{"big":9007199254740993,"metadata":{"managedFields":[{"a":1}],"name":"n"}}`, `{"big":9007199254740993,"metadata":{"name":"n"}}`, false},
		{reduced, `{"items":[{"metadata":{"managedFields":[]}},1],"metadata":{}}`, `{"items":[{"metadata":{}},1],"metadata":{}}`, false},
		{reduced, `[{"op":"remove","path":"/a"}]`, `[{"op":"remove","path":"/a"}]`, false},
		{reduced, `{`, "", true},
	} {
		var b Bodies
		if got := string(b.Add(c.rule, []byte(c.body), same)); got != c.want || b.Truncated != c.truncated {
			t.Errorf("%.60q: got %.60q, truncated %v", c.body, got, b.Truncated)
		}
	}
	var b Bodies
	if got := b.Add(plain, []byte("x"), func([]byte) ([]byte, error) { return nil, errors.New("no") }); got != nil || !b.Truncated {
		t.Errorf("got %q of an unreadable body", got)
	}
}

// TestCapture: a large response is sent whole and kept in bounded memory; a response that is
// begun again is kept from its new start.
func TestCapture(t *testing.T) {
	out := httptest.NewRecorder()
	c := &Capture{ResponseWriter: out}
	for range 3 {
		if n, err := c.Write(make([]byte, MaxBody)); n != MaxBody || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(c.Body()) != MaxBody+1 || out.Body.Len() != 3*MaxBody {
		t.Errorf("kept %d bytes, sent %d", len(c.Body()), out.Body.Len())
	}
	c.WriteHeader(404)
	if _, err := c.Write([]byte("{}")); err != nil || string(c.Body()) != "{}" {
		t.Errorf("kept %.20q (%v)", c.Body(), err)
	}
}
