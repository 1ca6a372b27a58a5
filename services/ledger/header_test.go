package ledger

import (
	"net/http"
	"strings"
	"testing"
)

func TestHeaderList(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  string
	}{
		{nil, ""}, {[]string{"a, b;q=1"}, "a, b;q=1"}, {[]string{"a", "b"}, "a,b"},
		{[]string{strings.Repeat("a/b,", 240_000)}, strings.Repeat("a/b,", 198) + "a/b"},
		{[]string{"a,b;" + strings.Repeat("c=d;", 240_000)}, "a"},
		{[]string{"a," + strings.Repeat("b", 1<<20)}, "a"}, {[]string{strings.Repeat("b", 1<<20)}, ""},
	} {
		if got := HeaderList(http.Header{"Accept": c.given}, "Accept"); got != c.want {
			t.Errorf("%.30q: %.50q of %d bytes, want %.50q of %d", c.given, got, len(got), c.want, len(c.want))
		}
	}
	many := make([]string, 100_000)
	if got := HeaderList(http.Header{"Accept": many}, "Accept"); len(got) > Header.Values {
		t.Errorf("%d bytes of many headers", len(got))
	}
}
