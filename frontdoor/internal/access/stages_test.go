package access

import (
	"net/http"
	"slices"
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
	var asked []string
	for _, q := range im.questions("authentication.example") {
		asked = append(asked, q.Verb+" "+q.Resource+"/"+q.Subresource+" "+q.Name)
	}
	want := []string{"impersonate users/ jane", "impersonate groups/ dev", "impersonate groups/ ops",
		"impersonate userextras/acme.com/project p1", "impersonate userextras/acme.com/project p2"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	for _, h := range []http.Header{{"Impersonate-Group": {"a"}}, {"Impersonate-Extra-X": {"a"}}, {"Impersonate-User": {"u"}, "Impersonate-Extra-%Zz": {"a"}}} {
		if _, err := readImpersonation(h); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%v: got %v, want BadRequest", h, err)
		}
	}
	sa := &impersonation{user: "system:serviceaccount:ns:robot"}
	if q := sa.questions("g")[0]; q.Resource != "serviceaccounts" || q.Namespace != "ns" || q.Name != "robot" {
		t.Errorf("a service account is asked for as %+v", q)
	}
	if g := sa.identity().Groups; !slices.Contains(g, "system:serviceaccounts:ns") {
		t.Errorf("a service account acts in groups %v", g)
	}
}
