package sightings_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/lifecycle/internal/sightings"
)

// TestLeft: the wait begins when a deletion is seen first, whatever its time is, and anew for another
// object with the same name.
func TestLeft(t *testing.T) {
	var d sightings.Deletions
	now := time.Unix(1e9, 0)
	future := metav1.NewTime(now.Add(time.Hour))
	one, two := &metav1.ObjectMeta{Name: "a", UID: "1", DeletionTimestamp: &future}, &metav1.ObjectMeta{Name: "a", UID: "2"}
	for _, x := range []struct {
		what string
		o    *metav1.ObjectMeta
		at   time.Duration
		want time.Duration
	}{
		{"at first", one, 0, sightings.Settle},
		{"later", one, sightings.Settle / 5, sightings.Settle * 4 / 5},
		{"at the end", one, sightings.Settle, 0},
		{"another object", two, sightings.Settle, sightings.Settle},
	} {
		if got := d.Left(x.o, now.Add(x.at)); got != x.want {
			t.Errorf("%s: %v, want %v", x.what, got, x.want)
		}
	}
	d.Forget("a")
	if got := d.Left(two, now.Add(time.Hour)); got != sightings.Settle {
		t.Errorf("after it was forgotten: %v", got)
	}
}
