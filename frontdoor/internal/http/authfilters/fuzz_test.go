package authfilters

import (
	"bufio"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// FuzzBearerToken reads tokens from headers of requests and WebSockets.
func FuzzBearerToken(f *testing.F) {
	c := &Control{Vocabulary: vocabulary.Platform()}
	f.Fuzz(func(t *testing.T, authorization, upgrade, protocol string) {
		h := http.Header{}
		h.Set("Authorization", authorization)
		h.Set("Upgrade", upgrade)
		h.Set("Sec-WebSocket-Protocol", protocol)
		token := c.bearerToken(h)
		if len(token) > len(authorization)+len(protocol) {
			t.Errorf("a token of %d bytes from %d", len(token), len(authorization)+len(protocol))
		}
		scheme, _, _ := strings.Cut(authorization, " ")
		if token != "" && !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(upgrade, "websocket") {
			t.Errorf("%q, %q, %q: the token %q is no bearer's", authorization, upgrade, protocol, token)
		}
	})
}

// FuzzImpersonation parses headers line by line: every group and value that the request
// would act with is authorized.
func FuzzImpersonation(f *testing.F) {
	f.Fuzz(func(t *testing.T, lines string) {
		header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(lines + "\r\n\r\n"))).ReadMIMEHeader()
		if err != nil {
			return
		}
		im, err := readImpersonation(http.Header(header))
		if im == nil || err != nil {
			return
		}
		authorized := map[string]bool{}
		z := &rights{allowed: []string{"*"}}
		if _, err := impersonates(t, z.control(false), services.UserInfo{Name: "sam"}, http.Header(header)); err != nil {
			t.Fatal(err)
		}
		for _, a := range z.of {
			authorized[a.Resource+"/"+a.Subresource+"="+a.Name] = true
		}
		if im.user == "" {
			t.Errorf("%q impersonates no user", lines)
		}
		for _, group := range im.groups {
			if !authorized["groups/="+group] {
				t.Errorf("%q: no authorization of the group %q", lines, group)
			}
		}
		for key, values := range im.extra {
			for _, value := range values {
				if !authorized["userextras/"+key+"="+value] {
					t.Errorf("%q: no authorization of %q=%q", lines, key, value)
				}
			}
		}
	})
}
