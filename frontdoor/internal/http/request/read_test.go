package request

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestReadConsistency checks each cell of the "Get" and "List" tables of the
// specification, except continue tokens, which have their own test.
func TestReadConsistency(t *testing.T) {
	recent := services.Read{Mode: services.MostRecent}
	any0 := services.Read{Mode: services.AnyRevision}
	notOlder := services.Read{Mode: services.NotOlderThan, Revision: 7}
	exact := services.Read{Mode: services.Exact, Revision: 7}
	for _, c := range []struct {
		query string
		want  services.Read
		field string // the field of the error
	}{
		{"", recent, ""}, {"resourceVersion=0", any0, ""}, {"resourceVersion=7", notOlder, ""},
		{"limit=5", recent, ""}, {"limit=5&resourceVersion=0", any0, ""}, {"limit=5&resourceVersion=7", exact, ""},
		{"resourceVersionMatch=Exact", recent, "resourceVersionMatch"},
		{"resourceVersionMatch=Exact&resourceVersion=0", recent, "resourceVersionMatch"},
		{"resourceVersionMatch=Exact&resourceVersion=7", exact, ""},
		{"resourceVersionMatch=Exact&limit=5", recent, "resourceVersionMatch"},
		{"resourceVersionMatch=Exact&limit=5&resourceVersion=0", recent, "resourceVersionMatch"},
		{"resourceVersionMatch=Exact&limit=5&resourceVersion=7", exact, ""},
		{"resourceVersionMatch=NotOlderThan", recent, "resourceVersionMatch"},
		{"resourceVersionMatch=NotOlderThan&resourceVersion=0", any0, ""},
		{"resourceVersionMatch=NotOlderThan&resourceVersion=7", notOlder, ""},
		{"resourceVersionMatch=NotOlderThan&limit=5&resourceVersion=0", any0, ""},
		{"resourceVersionMatch=NotOlderThan&limit=5&resourceVersion=7", notOlder, ""},
		{"resourceVersionMatch=Roughly&resourceVersion=7", recent, "resourceVersionMatch"},
	} {
		o, err := ParseReadOptions(asking("list", c.query, &catalogue.Type{}))
		if (err != nil) != (c.field != "") || err != nil && services.AsStatus(err).Details.Causes[0].Field != c.field {
			t.Errorf("%s: got error %v, want one that names %q", c.query, err, c.field)
		} else if got := o.ListRead(); err == nil && got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.query, got, c.want)
		}
	}
	for query, want := range map[string]services.Read{"": recent, "resourceVersion=0": any0, "resourceVersion=7": notOlder} {
		values, _ := url.ParseQuery(query)
		o, _ := ParseGetOptions(values)
		if got := o.GetRead(); got != want {
			t.Errorf("get ?%s: got %+v, want %+v", query, got, want)
		}
	}
}

// asking returns a request with these parameters.
func asking(verb, query string, t *catalogue.Type) *Request {
	values, _ := url.ParseQuery(query)
	return &Request{Verb: verb, Query: values, Type: t, Engine: &typesystem.Engine{Types: &catalogue.Catalogue{}}}
}

func TestMalformedReadOptions(t *testing.T) {
	pods := &catalogue.Type{Selectable: []catalogue.SelectableField{{Name: "spec.nodeName"}}}
	plain := &catalogue.Type{}
	for _, c := range []struct {
		verb, query string
		of          *catalogue.Type
		message     string
	}{
		{"list", "resourceVersion=x", plain, `invalid resource version: resourceVersion: Invalid value: "x"`},
		{"list", "limit=many", plain, `strconv.ParseInt: parsing "many": invalid syntax`},
		{"list", "limit=", plain, `strconv.ParseInt: parsing "": invalid syntax`},
		{"watch", "timeoutSeconds=1.5", plain, `strconv.ParseInt: parsing "1.5": invalid syntax`},
		{"list", "labelSelector=a+in", plain, "unable to parse requirement: found '' expected: '('"},
		{"list", "fieldSelector=a", plain, "invalid selector: 'a'; can't understand 'a'"},
		{"list", "fieldSelector=spec.hostname%3Dx", plain, `"spec.hostname" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"list", "fieldSelector=spec.hostname%3Dx", pods, "field label not supported: spec.hostname"},
		{"list", "fieldSelector=%3D0", pods, "field label not supported: "},
		{"list", "fieldSelector=%3D0", plain, `"" is not a known field selector`},
		{"deletecollection", "fieldSelector=a%3Db", &catalogue.Type{Custom: true}, "field label not supported: a"},
		{"deletecollection", "fieldSelector=definition.uid%3D1", plain, `"definition.uid" is not a known field selector`},
		{"deletecollection", "fieldSelector=definition.uid%3D1", pods, "field label not supported: definition.uid"},
		{"deletecollection", "fieldSelector=metadata.name%3Da,definition.uid%3D1", &catalogue.Type{Custom: true, DefinitionUID: "1"}, "field label not supported: definition.uid"},
		{"list", "limit=1&continue=x&resourceVersion=7", plain, "specifying resource version is not allowed when using continue"},
	} {
		_, err := ParseReadOptions(asking(c.verb, c.query, c.of))
		if !services.IsReason(err, services.ReasonBadRequest) || !strings.HasPrefix(err.Error(), c.message) {
			t.Errorf("?%s: got %v, want a BadRequest: %s", c.query, err, c.message)
		}
	}
	for query, negative := range map[string]bool{"timeoutSeconds=-1": true, "timeoutSeconds=-9223372036854775807": true, "timeoutSeconds=9223372036854775807": false} {
		if o, err := ParseReadOptions(asking("watch", query, plain)); err != nil || o.Timeout == 0 || o.Timeout < 0 != negative {
			t.Errorf("?%s: a timeout of %s, %v", query, o.Timeout, err)
		}
	}
	if _, err := ParseReadOptions(asking("list", "fieldSelector=spec.nodeName%3Dn1,metadata.name!%3Dx", pods)); err != nil {
		t.Errorf("known fields are refused: %v", err)
	}
}

// TestDefinitionUID selects objects by the UID of their definition.
func TestDefinitionUID(t *testing.T) {
	widgets := &catalogue.Type{Custom: true, Group: "example.com", Resource: "widgets", DefinitionUID: "1"}
	for _, verb := range []string{"list", "watch", "deletecollection"} {
		o, err := ParseReadOptions(asking(verb, "fieldSelector=definition.uid%3D1,metadata.name%3Da", widgets))
		if err != nil || o.FieldSelector != "metadata.name=a" {
			t.Errorf("%s: %q, %v", verb, o.FieldSelector, err)
		}
		for _, other := range []string{"definition.uid%3D2", "definition.uid%3D", "definition.uid%3D11"} {
			if _, err := ParseReadOptions(asking(verb, "fieldSelector="+other, widgets)); !services.IsReason(err, services.ReasonConflict) {
				t.Errorf("%s of %s: %v", verb, other, err)
			}
		}
	}
}

// TestContradictingReadOptions: all contradictions are reported at once.
func TestContradictingReadOptions(t *testing.T) {
	for _, c := range []struct {
		verb, query string
		causes      int
	}{
		{"list", "sendInitialEvents=true", 1}, {"list", "resourceVersionMatch=Roughly&continue=x", 3},
		{"list", "resourceVersionMatch=Exact&resourceVersion=0&continue=x", 2}, {"list", "resourceVersion=x&resourceVersionMatch=Roughly", 1},
		{"watch", "resourceVersionMatch=NotOlderThan", 1}, {"watch", "resourceVersionMatch=Exact", 2}, {"watch", "continue=x", 0}, {"watch", "continue=x&resourceVersionMatch=NotOlderThan", 2},
		{"watch", "sendInitialEvents=true", 1}, {"watch", "sendInitialEvents=true&resourceVersionMatch=Exact", 2},
		{"watch", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 0}, {"list", "continue=x&resourceVersion=0", 0},
	} {
		_, err := ParseReadOptions(asking(c.verb, c.query, &catalogue.Type{}))
		if c.causes == 0 && err == nil {
			continue
		}
		s := services.AsStatus(err)
		if s == nil || s.Code != http.StatusBadRequest || s.Details.Kind != "ListOptions" || len(s.Details.Causes) != c.causes {
			t.Errorf("%s ?%s: got %v, want %d causes", c.verb, c.query, err, c.causes)
		}
	}
}

// TestWatchWithToken: from release 1.36 on a watch from any version requires initial events,
// with which a token is forbidden.
func TestWatchWithToken(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	for query, refused := range map[string]bool{"continue=x": true, "continue=x&resourceVersion=0": true, "continue=x&resourceVersion=": true, "resourceVersion=0": false} {
		r := asking("watch", "watch=1&"+query, &catalogue.Type{})
		r.Engine.Types = types
		_, err := ParseReadOptions(r)
		if refused != (err != nil) || refused && services.AsStatus(err).Details.Causes[0].Field != fieldMatch {
			t.Errorf("watch ?%s: got %v, refused: %t", query, err, refused)
		}
	}
}

// TestWatchesFromTheBeginningEndIt: from release 1.36 on a watch that begins with the existing
// objects has a bookmark after them, if it has bookmarks.
func TestWatchesFromTheBeginningEndIt(t *testing.T) {
	for _, of := range []release.Release{release.V121, release.V136} {
		types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: of})
		if err != nil {
			t.Fatal(err)
		}
		for query, begins := range map[string]bool{"watch=1": true, "watch=true&resourceVersion=0": true, "watch=1&resourceVersion=7": false, "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan": false} {
			r := asking("watch", query, &catalogue.Type{})
			r.Engine.Types = types
			o, err := ParseReadOptions(r)
			ends := o.InitialEvents != nil && *o.InitialEvents
			if err != nil || o.Synthetic() != begins || ends != (begins && of == release.V136) {
				t.Errorf("%s ?%s: got %+v, %v", of, query, o, err)
			}
		}
	}
}

// TestExport: an export of an object is refused.
func TestExport(t *testing.T) {
	for query, refused := range map[string]bool{"export=true": true, "export": true, "export=false": false, "export=0": false} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseGetOptions(values); refused != (err != nil) {
			t.Errorf("?%s: %v", query, err)
		}
	}
}

// TestLenientReadOptions: empty values mean the default, and any value of a flag but
// false and 0 means true.
func TestLenientReadOptions(t *testing.T) {
	o, err := ParseReadOptions(asking("list", "limit=-1&allowWatchBookmarks=maybe&foo=bar", &catalogue.Type{}))
	if err != nil || o.Limit != 0 || !o.Bookmarks {
		t.Errorf("got %+v, %v", o, err)
	}
}

// TestTimeout parses the client's timeout.
func TestTimeout(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": time.Minute, "timeout=": time.Minute, "timeout=0": time.Minute, "timeout=-1s": time.Minute, "timeout=5s": 5 * time.Second, "timeout=2h": time.Minute,
	} {
		if got, err := asking("get", query, nil).Timeout(time.Minute); err != nil || got != want {
			t.Errorf("?%s: got %v, %v; want %v", query, got, err, want)
		}
	}
	if _, err := asking("get", "timeout=x", nil).Timeout(time.Minute); !services.IsReason(err, services.ReasonBadRequest) {
		t.Errorf("no duration: %v", err)
	}
}
