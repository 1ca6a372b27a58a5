package wire_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestNegotiate(t *testing.T) {
	const (
		protobuf   = "application/vnd.platform.protobuf"
		kubernetes = "application/vnd.kubernetes.protobuf" // of standard clients
		table      = "application/json;as=Table;g=meta.platform.io;v=v1"
		partial    = "application/json;as=PartialObjectMetadata;g=meta.platform.io;v=v1"
		json       = "application/json"
	)
	codec := newCodec(vocabulary.Platform())
	for _, c := range []struct {
		accept string
		t      *catalogue.Type
		what   wire.What
		want   string // content type; "" for 406
		media  wire.Media
		as     wire.As
	}{
		{"", configMaps, wire.Object, json, wire.JSON, wire.Whole},
		{"*/*", configMaps, wire.Object, json, wire.JSON, wire.Whole},
		{"application/*", configMaps, wire.Object, json, wire.JSON, wire.Whole},
		{"text/html, */*;q=0.1", configMaps, wire.Object, json, wire.JSON, wire.Whole},
		{"application/json;charset=utf-8", configMaps, wire.Object, json, wire.JSON, wire.Whole},
		{"application/yaml", configMaps, wire.List, "application/yaml", wire.YAML, wire.Whole},
		{"application/json;q=0.5, application/yaml", configMaps, wire.Object, "application/yaml", wire.YAML, wire.Whole},
		{"*/*, application/yaml", configMaps, wire.Object, "application/yaml", wire.YAML, wire.Whole},
		{"application/json;q=0, application/yaml;q=0.1", configMaps, wire.Object, "application/yaml", wire.YAML, wire.Whole},
		{"application/yaml", configMaps, wire.Watch, "", 0, 0},
		{"application/yaml,application/json", configMaps, wire.Watch, json, wire.JSON, wire.Whole},
		{"application/json;stream=watch", configMaps, wire.Watch, json, wire.JSON, wire.Whole},
		{"application/json;stream=other", configMaps, wire.Watch, "", 0, 0},
		{protobuf, configMaps, wire.List, protobuf, wire.Protobuf, wire.Whole},
		{protobuf, configMaps, wire.Watch, protobuf + ";stream=watch", wire.Protobuf, wire.Whole},
		{protobuf + ";stream=watch", configMaps, wire.Watch, protobuf + ";stream=watch", wire.Protobuf, wire.Whole},
		{protobuf, widgets, wire.List, "", 0, 0},
		{protobuf + "," + json, widgets, wire.List, json, wire.JSON, wire.Whole},
		{protobuf + ";as=PartialObjectMetadataList;g=meta.platform.io;v=v1", widgets, wire.List, protobuf, wire.Protobuf, wire.Partial},
		{protobuf + ";as=Table;g=meta.platform.io;v=v1", configMaps, wire.List, "", 0, 0},
		{kubernetes, configMaps, wire.List, kubernetes, wire.Protobuf, wire.Whole},
		{kubernetes, configMaps, wire.Watch, kubernetes + ";stream=watch", wire.Protobuf, wire.Whole},
		{kubernetes + "," + protobuf, configMaps, wire.List, kubernetes, wire.Protobuf, wire.Whole},
		{kubernetes, widgets, wire.List, "", 0, 0},
		{table, configMaps, wire.Object, json, wire.JSON, wire.Table},
		{table, configMaps, wire.Watch, json, wire.JSON, wire.Table},
		{table + ",application/json", nil, wire.Object, json, wire.JSON, wire.Whole},
		{table, nil, wire.Object, "", 0, 0},
		{"application/json;as=Table;g=meta.platform.io;v=v1beta1", widgets, wire.List, json, wire.JSON, wire.Table},
		{"application/json;as=Table;g=meta.platform.io;v=v9", configMaps, wire.List, "", 0, 0},
		{"application/json;as=Table;g=meta.k8s.io;v=v1", configMaps, wire.List, "", 0, 0},
		{"application/json;as=Table", configMaps, wire.List, "", 0, 0},
		{"application/json;v=v1", configMaps, wire.Object, "", 0, 0},
		{"application/json;g=meta.platform.io, application/yaml", configMaps, wire.Object, "application/yaml", wire.YAML, wire.Whole},
		{"application/json;as=Carpet;g=meta.platform.io;v=v1", configMaps, wire.List, "", 0, 0},
		{partial, configMaps, wire.Object, json, wire.JSON, wire.Partial},
		{partial, configMaps, wire.Watch, json, wire.JSON, wire.Partial},
		{partial, configMaps, wire.List, "", 0, 0},
		{"text/html", configMaps, wire.Object, "", 0, 0},
		{"nonsense;;", configMaps, wire.Object, "", 0, 0},
	} {
		form, err := codec.Negotiate(request(c.accept, ""), c.t, c.what)
		if c.want == "" {
			if !services.IsReason(err, services.ReasonNotAcceptable) {
				t.Errorf("%q: %+v, %v; want NotAcceptable", c.accept, form, err)
			}
			continue
		}
		if err != nil || form.ContentType != c.want || form.Media != c.media || form.As != c.as {
			t.Errorf("%q: %+v, %v; want %s, %d, %d", c.accept, form, err, c.want, c.media, c.as)
		}
	}
}

func TestNegotiateParameters(t *testing.T) {
	const table = "application/json;as=Table;g=meta.platform.io;v=v1"
	codec := newCodec(vocabulary.Platform())
	for query, want := range map[string]wire.Include{"": wire.IncludeMetadata, "includeObject=None": wire.IncludeNone, "includeObject=Object": wire.IncludeObject, "includeObject=Metadata": wire.IncludeMetadata} {
		if form, err := codec.Negotiate(request(table, query), configMaps, wire.List); err != nil || form.Include != want {
			t.Errorf("%s: %+v, %v", query, form, err)
		}
	}
	if _, err := codec.Negotiate(request(table, "includeObject=Nothing"), configMaps, wire.List); !services.IsReason(err, services.ReasonBadRequest) {
		t.Errorf("unknown includeObject: %v", err)
	}
	for _, c := range []struct {
		query, agent, accept string
		pretty               bool
	}{
		{"", "", "", false}, {"pretty=true", "", "", true}, {"pretty=1", "", "", true}, {"pretty=0", "curl/8", "", false},
		{"", "curl/8", "", true}, {"", "Mozilla/5.0 (X)", "", true}, {"", "Go-http-client/2.0", "", false},
		{"", "", "application/json;pretty=1", true}, {"pretty=true", "", "application/yaml", false},
	} {
		r := request(c.accept, c.query)
		r.Header.Set("User-Agent", c.agent)
		if form, err := codec.Negotiate(r, configMaps, wire.Object); err != nil || form.Pretty != c.pretty {
			t.Errorf("%+v: %+v, %v", c, form, err)
		}
	}
	r := request("", "")
	r.Header = http.Header{"Accept": {"text/html", "application/yaml"}}
	if form, err := codec.Negotiate(r, configMaps, wire.Object); err != nil || form.Media != wire.YAML {
		t.Errorf("two Accept headers: %+v, %v", form, err)
	}
}

// TestNegotiateLater: 1.36 requires that a request names a representation, whatever its
// parameters, except for custom types.
func TestNegotiateLater(t *testing.T) {
	codec := wire.New(wire.Config{Vocabulary: vocabulary.K8s(), Release: release.V136})
	custom := &catalogue.Type{Group: "a.example.com", Version: "v1", Kind: "Thing", Custom: true}
	for _, c := range []struct {
		accept string
		t      *catalogue.Type
		what   wire.What
		want   string // part of the message; "" for success
	}{
		{"application/*", configMaps, wire.Object, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"text/html", configMaps, wire.Watch, "application/vnd.kubernetes.protobuf;stream=watch"},
		{"application/json;as=Other;g=meta.k8s.io;v=v1", configMaps, wire.Object, "only the following media types are accepted"},
		{"application/*", custom, wire.Object, ""},
		{"text/html, */*;q=0.1", configMaps, wire.Object, ""},
		{"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", configMaps, wire.Watch, ""},
	} {
		_, err := codec.Negotiate(&http.Request{Header: http.Header{"Accept": {c.accept}}, URL: &url.URL{}}, c.t, c.what)
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %q", c.accept, got, c.want)
		}
	}
}
