package monotonic

import (
	"testing"
	"time"
)

func TestNow(t *testing.T) {
	began := time.Now()
	before := Now()
	if Since(0) < time.Hour {
		t.Error("the zero value is not long ago")
	}
	for Now() == before {
	}
	if got := Since(before); got <= 0 || got > time.Since(began) {
		t.Errorf("%v have passed", got)
	}
}
