package checks

import (
	"strings"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func health() {
	s := Section("Health endpoints")

	for id, path := range map[string]string{"HEALTH-01": "/healthz", "HEALTH-02": "/livez", "HEALTH-03": "/readyz"} {
		s.Check(id, path+": a status code 200 means healthy, live or ready", func(t *T) { t.GET(path).Is(200) })
	}
	for id, path := range map[string]string{"HEALTH-04": "/livez", "HEALTH-05": "/readyz", "HEALTH-06": "/healthz"} {
		s.Check(id, path+"?verbose prints each check as [+]name ok lines, ending with healthz check passed", func(t *T) {
			text := string(t.GET(path + "?verbose").Is(200).Raw)
			lines := strings.Split(strings.TrimSpace(text), "\n")
			t.True(len(lines) > 1, "a line for each check and a last line, got %q", text)
			for _, l := range lines[:len(lines)-1] {
				t.True(strings.HasPrefix(l, "[+]") && strings.HasSuffix(l, " ok"), "a line like [+]name ok, got %q", l)
			}
			// the specification shows it for healthz; the others say their own name
			t.Eq("the last line", lines[len(lines)-1], strings.TrimPrefix(path, "/")+" check passed")
		})
	}
	// checksOf returns the names of the individual checks.
	checksOf := func(t *T, path string) (names []string) {
		for _, l := range strings.Split(string(t.GET(path+"?verbose").Is(200).Raw), "\n") {
			if rest, ok := strings.CutPrefix(l, "[+]"); ok {
				names = append(names, strings.TrimSuffix(rest, " ok"))
			}
		}
		return names
	}
	for id, path := range map[string]string{"HEALTH-07": "/livez", "HEALTH-08": "/readyz"} {
		s.Check(id, path+"/<check_name>: an individual check", func(t *T) {
			names := checksOf(t, path)
			t.True(len(names) > 0, "at least one check")
			for _, n := range names {
				t.GET(path + "/" + n).Is(200)
			}
			t.GET(path + "/no-such-check").Is(404)
		})
		s.Check(map[string]string{"/livez": "HEALTH-09", "/readyz": "HEALTH-10"}[path], path+"?exclude=<name>: shown as [+]<name> excluded: ok; combined with verbose using &", func(t *T) {
			name := checksOf(t, path)[0]
			text := string(t.GET(path + "?verbose&exclude=" + name).Is(200).Raw)
			t.Contains("text", text, "[+]"+name+" excluded: ok")
			t.GET(path + "?exclude=" + name).Is(200)
		})
	}
}
