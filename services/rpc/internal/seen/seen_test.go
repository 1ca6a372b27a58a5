package seen

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services/resource"
)

// TestNewest: the newest revision of a type counts as recent for a while after it was that of the present, and the
// revision of an old object never does.
func TestNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started = time.Now()
		<-time.After(time.Minute)
		var r Revisions
		pods, nodes := resource.GroupResource{Resource: "pods"}, resource.GroupResource{Resource: "nodes"}
		expect := func(gr resource.GroupResource, revision int64, recent bool) {
			t.Helper()
			if n, is := r.Newest(gr); n != revision || is != recent {
				t.Errorf("%s: %d, recent: %v; want %d, %v", gr, n, is, revision, recent)
			}
		}
		expect(pods, 0, false)
		r.Saw(pods, 7)
		expect(pods, 7, false)
		r.SawNow(pods, 9)
		r.Saw(pods, 8)
		expect(pods, 9, true)
		expect(nodes, 0, false)
		<-time.After(recent)
		expect(pods, 9, true)
		<-time.After(time.Second)
		expect(pods, 9, false)
		r.SawNow(pods, 9)
		expect(pods, 9, true)
	})
}
