package request

import (
	"net/url"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/services"
)

// TestReadConsistency is the "Get" and "List" tables of the specification, cell by
// cell; continue tokens are a case of their own.
func TestReadConsistency(t *testing.T) {
	recent := services.Read{Mode: services.MostRecent}
	any0 := services.Read{Mode: services.AnyRevision}
	notOlder := services.Read{Mode: services.NotOlderThan, Revision: 7}
	exact := services.Read{Mode: services.Exact, Revision: 7}
	for _, c := range []struct {
		query string
		want  services.Read
		field string // named by the refusal
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
		query, _ := url.ParseQuery(c.query)
		o, err := ParseReadOptions(query, &catalogue.Type{})
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		got, err := o.ListRead()
		if (err != nil) != (c.field != "") || err != nil && !strings.HasPrefix(err.Error(), c.field+":") {
			t.Errorf("%s: got error %v, want one that names %q", c.query, err, c.field)
		} else if err == nil && got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.query, got, c.want)
		}
	}
	for query, want := range map[string]services.Read{"": recent, "resourceVersion=0": any0, "resourceVersion=7": notOlder} {
		values, _ := url.ParseQuery(query)
		o, _ := ParseReadOptions(values, &catalogue.Type{})
		if got := o.GetRead(); got != want {
			t.Errorf("get ?%s: got %+v, want %+v", query, got, want)
		}
	}
}

func TestMalformedReadOptionsNameTheirParameter(t *testing.T) {
	pods := &catalogue.Type{Selectable: []catalogue.SelectableField{{Name: "spec.nodeName"}}}
	for query, parameter := range map[string]string{
		"resourceVersion=x": "resourceVersion", "limit=-1": "limit", "limit=many": "limit", "timeoutSeconds=x": "timeoutSeconds",
		"allowWatchBookmarks=x": "allowWatchBookmarks", "sendInitialEvents=x": "sendInitialEvents",
		"labelSelector=a+in": "labelSelector", "fieldSelector=a": "fieldSelector", "fieldSelector=spec.hostname%3Dx": "fieldSelector",
	} {
		values, _ := url.ParseQuery(query)
		_, err := ParseReadOptions(values, pods)
		if !services.IsReason(err, services.ReasonBadRequest) || !strings.HasPrefix(err.Error(), parameter+":") {
			t.Errorf("?%s: got %v, want a BadRequest that names %s", query, err, parameter)
		}
	}
	values, _ := url.ParseQuery("fieldSelector=spec.nodeName%3Dn1,metadata.name!%3Dx")
	if _, err := ParseReadOptions(values, pods); err != nil {
		t.Errorf("known fields are refused: %v", err)
	}
}
