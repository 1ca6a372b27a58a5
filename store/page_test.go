package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

// TestAPageIsSmall lists large objects: the service holds less than a megabyte for a
// client that does not read the response.
func TestAPageIsSmall(t *testing.T) {
	const objects, size = 30, 100 << 10
	s := replica(t, openEtcd(t))
	var last services.Object
	for i := range objects {
		var err error
		name := fmt.Sprint("p", i)
		if last, err = s.Create(t.Context(), services.CreateRequest{Key: pod(name), Content: content(name, strings.Repeat("x", size))}); err != nil {
			t.Fatal(err)
		}
	}
	request := services.ListRequest{GroupResource: pods, Read: services.Read{Mode: services.NotOlderThan, Revision: last.Revision}}
	seen := 0
	for pages := 1; ; pages++ {
		page, err := s.List(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, o := range page.Objects {
			held += len(o.JSON)
		}
		if held > 1<<20 {
			t.Errorf("page %d holds %d bytes", pages, held)
		}
		seen += len(page.Objects)
		if page.Next == "" {
			break
		}
		request = page.Following(request)
	}
	if seen != objects {
		t.Errorf("%d of %d objects are in the pages", seen, objects)
	}
}
