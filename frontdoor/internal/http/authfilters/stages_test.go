package authfilters

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

func TestImpersonationHeaders(t *testing.T) {
	im, err := readImpersonation(http.Header{
		"Impersonate-User": {"jane"}, "Impersonate-Group": {"dev", "ops"},
		"Impersonate-Extra-Acme.com%2fproject": {"p1", "p2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	u := im.identity()
	if u.Name != "jane" || !slices.Equal(u.Groups, []string{"dev", "ops", services.GroupAuthenticated}) || !slices.Equal(u.Extra["acme.com/project"], []string{"p1", "p2"}) {
		t.Errorf("got %+v", u)
	}
	var permissions []string
	for _, q := range im.questions("authentication.example") {
		permissions = append(permissions, q.Verb+" "+q.Resource+"/"+q.Subresource+" "+q.Name)
	}
	want := []string{"impersonate users/ jane", "impersonate groups/ dev", "impersonate groups/ ops",
		"impersonate userextras/acme.com/project p1", "impersonate userextras/acme.com/project p2"}
	if !slices.Equal(permissions, want) {
		t.Errorf("permissions %q, want %q", permissions, want)
	}
	for _, h := range []http.Header{{"Impersonate-Group": {"a"}}, {"Impersonate-Uid": {"a"}}, {"Impersonate-Extra-X": {"a"}}, {"Impersonate-User": {"u"}, "Impersonate-Extra-%Zz": {"a"}}} {
		if _, err := readImpersonation(h); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%v: got %v, want BadRequest", h, err)
		}
	}
	everything, err := readImpersonation(http.Header{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"u1"},
		"Impersonate-Extra-Scope": {"a"}, "Impersonate-Extra-%73cope": {"b"}})
	if err != nil {
		t.Fatal(err)
	}
	permissions = nil
	for _, q := range everything.questions("g") {
		permissions = append(permissions, q.Group+" "+q.Resource+"/"+q.Subresource+" "+q.Name)
	}
	if want := []string{" users/ jane", "g uids/ u1", "g userextras/scope b", "g userextras/scope a"}; !slices.Equal(permissions, want) {
		t.Errorf("permissions %q, want %q", permissions, want)
	}
	if u := everything.identity(); u.UID != "u1" || !slices.Equal(u.Extra["scope"], []string{"b", "a"}) {
		t.Errorf("got %+v", u)
	}
	for _, x := range []struct{ user, group, want string }{
		{"jane", "system:unauthenticated", "system:unauthenticated"}, {"jane", "system:authenticated", "system:authenticated"},
		{"system:anonymous", "system:unauthenticated", "system:unauthenticated"}, {"jane", "dev", "dev system:authenticated"},
	} {
		im := &impersonation{user: x.user, groups: []string{x.group}}
		if got := strings.Join(im.identity().Groups, " "); got != x.want {
			t.Errorf("%s in %s acts in %q, want %q", x.user, x.group, got, x.want)
		}
	}
	for _, name := range []string{"ns:robot:more", "ns:", ":robot", "ns", "NS:robot"} {
		im := &impersonation{user: "system:serviceaccount:" + name}
		if q := im.questions("g")[0]; q.Resource != "users" || len(im.identity().Groups) != 1 {
			t.Errorf("%s is authorized as %+v and has the groups %v", name, q, im.identity().Groups)
		}
	}
	sa := &impersonation{user: "system:serviceaccount:ns:robot"}
	if q := sa.questions("g")[0]; q.Resource != "serviceaccounts" || q.Namespace != "ns" || q.Name != "robot" {
		t.Errorf("a service account is authorized as %+v", q)
	}
	if g := sa.identity().Groups; !slices.Contains(g, "system:serviceaccounts:ns") {
		t.Errorf("a service account acts in groups %v", g)
	}
}
