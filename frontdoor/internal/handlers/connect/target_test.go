package connect

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	for given, want := range map[string]target{
		"a":                             {"http", "a", ""},
		"a:80":                          {"http", "a", "80"},
		"a:web":                         {"http", "a", "web"},
		"https:a:web":                   {"https", "a", "web"},
		"http:a:":                       {"http", "a", ""},
		":a:1":                          {"http", "a", "1"},
		"":                              {},
		":80":                           {},
		"ftp:a:80":                      {},
		"a:b:c:d":                       {},
		"a:70000":                       {},
		"a:-1":                          {},
		"a:0":                           {},
		"a:1.1.1.1":                     {},
		"https:a:80@x":                  {},
		"a:80\x00":                      {},
		"a:" + strings.Repeat("b", 100): {},
	} {
		got, err := parseTarget("pod", given)
		if got != want || (err == nil) != (want != target{}) {
			t.Errorf("%q: got %+v, %v", given, got, err)
		}
	}
}

// FuzzTargets: what is accepted is one of the two schemes, a name without a colon, and
// a port that cannot be taken for an address.
func FuzzTargets(f *testing.F) {
	for _, seed := range []string{"a", "a:80", "https:a:web", ":::", "http::80", "a:65536", "ä:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		got, err := parseTarget("pod", given)
		if err != nil {
			if (got != target{}) {
				t.Errorf("%q is refused with %+v", given, got)
			}
			return
		}
		if got.scheme != "http" && got.scheme != "https" || got.name == "" || strings.Contains(got.name, ":") || !strings.Contains(given, got.name) {
			t.Errorf("%q is %+v", given, got)
		}
		if n := portNumber(got.port); strings.ContainsAny(got.port, ":./@[]%\x00 ") || n < 0 || n > 65535 {
			t.Errorf("%q has the port %q", given, got.port)
		}
	})
}

// FuzzPorts: the ports of a query are those that it names, in their order.
func FuzzPorts(f *testing.F) {
	for _, seed := range []string{"ports=80", "ports=80,443&ports=1", "ports=", "ports=65536", "ports=-1", "ports=0x50&ports=8_0", "ports=%38%30;ports=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		ports, err := portsOf(q)
		if err != nil {
			return
		}
		var named []string
		for _, port := range ports {
			named = append(named, strconv.Itoa(int(port)))
		}
		given := strings.Split(strings.Join(q["ports"], ","), ",")
		for i := range given {
			given[i] = cmp.Or(strings.TrimLeft(given[i], "0"), "0")
		}
		if len(q["ports"]) > 0 && !slices.Equal(named, given) || len(q["ports"]) == 0 && len(named) > 0 {
			t.Errorf("%q names %v", query, ports)
		}
	})
}
