package authfilters

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
)

// TestRepeatedParts: authz is called once for each group and extra value, however often it is given.
// The identity has the repetitions, as in Kubernetes.
func TestRepeatedParts(t *testing.T) {
	const g = ".authentication.k8s.io"
	groups := append(slices.Repeat([]string{"dev", "ops"}, 20_000), "dev")
	h := http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": groups,
		"Impersonate-Extra-Acme.io%2fa": slices.Repeat([]string{"x"}, 1000), "Impersonate-Extra-Acme.io%2f%61": {"y", "x"}}
	for what, want := range map[string][]string{
		"plain": {"impersonate users  jane", "impersonate groups  dev", "impersonate groups  ops",
			"impersonate userextras/acme.io/a" + g + "  y", "impersonate userextras/acme.io/a" + g + "  x"},
		"constrained": {"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  jane", "impersonate:user-info groups" + g + "  *",
			"impersonate:user-info groups" + g + "  dev", "impersonate:user-info groups" + g + "  ops", "impersonate:user-info userextras/*" + g + "  *",
			"impersonate:user-info userextras/acme.io/a" + g + "  y", "impersonate:user-info userextras/acme.io/a" + g + "  x"},
	} {
		z := &rights{allowed: slices.DeleteFunc(slices.Clone(want), func(q string) bool { return strings.HasSuffix(q, "*") })}
		r, err := impersonates(t, z.control(what == "constrained"), services.UserInfo{Name: "sam"}, h)
		if err != nil || !slices.Equal(z.requested, want) {
			t.Fatalf("%s: %v, requested %d times: %q", what, err, len(z.requested), z.requested[:min(20, len(z.requested))])
		}
		if !slices.Equal(r.User.Groups, append(groups, services.GroupAuthenticated)) || len(r.User.Extra["acme.io/a"]) != 1002 {
			t.Errorf("%s: %d groups, %d values", what, len(r.User.Groups), len(r.User.Extra["acme.io/a"]))
		}
	}
}

// TestManyParts: more different groups or extra values than the bound are refused, before authz is
// called for any of them.
func TestManyParts(t *testing.T) {
	values := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("v%d", i))
		}
		return append(list, list...)
	}
	for what, c := range map[string]struct {
		header http.Header
		want   string // the headers that the error names; empty for none
	}{
		"groups":               {http.Header{"Impersonate-Group": values(maxEach)}, ""},
		"extra values":         {http.Header{"Impersonate-Extra-A": values(maxEach)}, ""},
		"too many groups":      {http.Header{"Impersonate-Group": values(maxEach + 1)}, "Impersonate-Group"},
		"too many values":      {http.Header{"Impersonate-Extra-A": values(maxEach + 1)}, "Impersonate-Extra"},
		"too many of two keys": {http.Header{"Impersonate-Extra-A": values(maxEach), "Impersonate-Extra-B": {"v1"}}, "Impersonate-Extra"},
	} {
		z := &rights{allowed: []string{"*"}}
		c.header.Set("Impersonate-User", "jane")
		_, err := impersonates(t, z.control(true), services.UserInfo{Name: "sam"}, c.header)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		counted, _ := limit.Of(err)
		if !services.IsReason(err, services.ReasonBadRequest) || !strings.Contains(err.Error(), "The "+c.want+" headers") || counted != limit.Impersonated || len(z.requested) > 0 {
			t.Errorf("%s: %v, counted as %q, requested %d times", what, err, counted, len(z.requested))
		}
	}
}
