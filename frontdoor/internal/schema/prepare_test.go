package schema

import (
	"encoding/json"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestTmp(t *testing.T) {
	c, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform()})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(c, vocabulary.Platform())
	if err != nil {
		t.Fatal(err)
	}
	ty, _ := c.Lookup("apps", "v1", "deployments")
	obj := map[string]any{"metadata": map[string]any{"name": "x", "creationTimestamp": nil}, "foo": int64(1), "spec": map[string]any{"replicas": int64(2)}}
	w, err := e.Prepare(ty, obj, Warn)
	t.Log(w, err)
	b, _ := json.Marshal(obj)
	t.Log(string(b))
	t.Log(e.Validate(ty, obj, nil))
}
