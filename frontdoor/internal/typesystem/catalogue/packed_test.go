package catalogue_test

import (
	"os"
	"sync"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/published"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestPacked: the packed types are those of the documents, and all schemas can be decoded.
func TestPacked(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		want, err := published.Pack(r)
		if packed, unread := os.ReadFile("packed/" + r.String() + ".txt"); err != nil || unread != nil || string(want) != string(packed) {
			t.Errorf("packed/%s.txt is out of date (advice: run make gen): %v %v", r, err, unread)
		}
		for _, v := range []vocabulary.Vocabulary{vocabulary.K8s(), vocabulary.Platform()} {
			c, err := catalogue.New(catalogue.Options{Vocabulary: v, Release: r})
			if err != nil {
				t.Fatal(err)
			}
			for name, s := range c.Definitions().All() {
				if s == nil || len(s.Type) == 0 && s.Description == "" && s.Ref.String() == "" {
					t.Errorf("%s in %s: the schema of %s is %+v", r, v.Name, name, s)
				}
			}
		}
	}
}

// TestDefinitionsAreShared: concurrent first calls get the same schema.
func TestDefinitionsAreShared(t *testing.T) {
	c, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	found := make([]*spec.Schema, 16)
	var calls sync.WaitGroup
	for i := range found {
		calls.Go(func() { found[i] = c.Definitions().Get("io.k8s.api.core.v1.PodSpec") })
	}
	calls.Wait()
	for _, s := range found {
		if s == nil || s != found[0] {
			t.Fatalf("the calls got %p and %p", s, found[0])
		}
	}
	if s := c.Definitions().Get("io.k8s.api.core.v1.Nothing"); s != nil {
		t.Errorf("a name that does not exist: %v", s)
	}
}
