package merge

import (
	"testing"
	"encoding/json"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestTmp(t *testing.T) {
	c, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform()})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Types: c, Vocabulary: vocabulary.Platform(), Now: func() time.Time { return time.Unix(0, 0) }})
	svc, _ := c.Lookup("", "v1", "services")
	show := func(o any, err error) {
		t.Helper()
		b, _ := yaml.Marshal(o)
		t.Log(string(b), err)
	}
	o, _, err := e.Patch(PatchRequest{Type: svc, MediaType: MediaTypeApply, Manager: "one", Body: []byte(`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, name: web}]}}`)})
	show(o, err)
	o2, _, err := e.Patch(PatchRequest{Type: svc, MediaType: MediaTypeApply, Manager: "two", Current: o, Body: []byte(`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, name: webx},{port: 82}]}}`)})
	show(o2, err)
	o3, _, err := e.Patch(PatchRequest{Type: svc, MediaType: MediaTypeStrategic, Current: o, Body: []byte(`{"spec": {"ports": [{"port": 82,"name":"x"}]}}`)})
	show(o3, err)
	show(nil, e.Track(Change{Type: svc, Live: o, New: o3, Manager: "patcher"}))
	b, _ := json.MarshalIndent(o3, "", " ")
	t.Log(string(b))
}
