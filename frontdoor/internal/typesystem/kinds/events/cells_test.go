package events

import (
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

// TestSources: later releases also show the instance of the component that reports an event.
func TestSources(t *testing.T) {
	for object, want := range map[string][2]string{
		`{"source":{"component":"c","host":"h"},"reportingInstance":"i"}`:           {"c, h", "c, h"},
		`{"reportingComponent":"c","reportingInstance":"i"}`:                        {"c", "c, i"},
		`{"reportingController":"c","reportingInstance":"i","deprecatedSource":{}}`: {"c", "c, i"},
		`{"reportingController":"c"}`:                                               {"c", "c"},
	} {
		var o cell.Object
		o.Open([]byte(object))
		if got := [2]string{showEventSource(&o).(string), showEventInstance(&o).(string)}; got != want {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}
