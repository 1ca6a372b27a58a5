package rights

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/rpc/porticov1"
	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rawhttp"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func identities() []attack.Trial {
	return []attack.Trial{
		{Name: "FrontProxy", Finding: "D", Run: frontProxy},
		{Name: "ClientCertificates", Finding: "D", Run: clientCertificates},
		{Name: "ForgedTokens", Finding: "D", Run: forgedTokens},
		{Name: "Impersonation", Finding: "D", Run: impersonation},
		{Name: "PeerCalls", Finding: "D", Separate: true, Run: peerCalls},
		{Name: "PeerCertificateAtTheDoor", Finding: "D", Separate: true, Run: peerAtTheDoor},
	}
}

// shown requests a path with a client certificate over a new connection, and returns the
// status code, 0 if the handshake was refused.
func shown(ctx context.Context, t *attack.Target, files peertls.Files, path string, headers ...string) (int, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return 0, err
	}
	s := attack.Server(t)
	s.Certificates = []tls.Certificate{pair}
	answers, err := s.Exchange(ctx, rawhttp.Head(http.MethodGet, path, append(headers, "Connection: close")...)+"\r\n\r\n", 5*time.Second)
	if err != nil || len(answers) == 0 {
		return 0, nil
	}
	return answers[0].Code, nil
}

// frontProxy names another user in headers, with and without a valid proxy certificate.
func frontProxy(ctx context.Context, t *attack.Target) error {
	otherAuthority, err := peertls.NewAuthority()
	if err != nil {
		return err
	}
	headers := []string{"X-Remote-User: mallory", "X-Remote-Group: system:masters"}
	for _, c := range []struct {
		what      string
		authority *peertls.Authority
		name      string
		allowed   bool
	}{
		{"the right one", t.ProxyAuthority, t.ProxyName, true},
		{"another name", t.ProxyAuthority, "somebody", false},
		{"another authority", otherAuthority, t.ProxyName, false},
		{"the authority of users", t.ClientAuthority, t.ProxyName, false},
	} {
		files, err := c.authority.Issue(t.Dir, c.name)
		if err != nil {
			return err
		}
		code, err := shown(ctx, t, files, attack.SecretsPath, headers...)
		if err != nil {
			return err
		}
		if (code == http.StatusOK) != c.allowed {
			return fmt.Errorf("a front proxy with %s gets %d", c.what, code)
		}
	}
	r := cluster.Request{Path: attack.SecretsPath, Header: http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}}
	return attack.Expect(ctx, t.As(""), r, http.StatusForbidden, http.StatusUnauthorized)
}

// clientCertificates sends certificates of the right CA and of others. The right one names
// a user without permissions: authenticated and forbidden.
func clientCertificates(ctx context.Context, t *attack.Target) error {
	otherAuthority, err := peertls.NewAuthority()
	if err != nil {
		return err
	}
	for _, c := range []struct {
		authority *peertls.Authority
		codes     []int
	}{
		{t.ClientAuthority, []int{http.StatusForbidden}},
		{otherAuthority, []int{0, http.StatusUnauthorized, http.StatusForbidden}},
		{t.ProxyAuthority, []int{0, http.StatusUnauthorized, http.StatusForbidden}},
	} {
		files, err := c.authority.Issue(t.Dir, "system:masters")
		if err != nil {
			return err
		}
		code, err := shown(ctx, t, files, attack.SecretsPath)
		if err != nil {
			return err
		}
		if !contains(c.codes, code) {
			return fmt.Errorf("a certificate gets %d, want %v", code, c.codes)
		}
	}
	return nil
}

func contains(codes []int, code int) bool {
	for _, c := range codes {
		if c == code {
			return true
		}
	}
	return false
}

// forgedTokens modifies a valid token in ways that some JWT libraries have accepted.
func forgedTokens(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	parts := strings.Split(mallory.Token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("a token of %d parts", len(parts))
	}
	var claims map[string]any
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return err
	}
	encode := func(v any) string {
		text, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	with := func(name string, value any) string {
		changed := maps.Clone(claims)
		changed[name] = value
		return encode(changed)
	}
	forged := map[string]string{
		"no algorithm":    encode(map[string]string{"alg": "none"}) + "." + parts[1] + ".",
		"None":            encode(map[string]string{"alg": "None"}) + "." + parts[1] + "." + parts[2],
		"no signature":    parts[0] + "." + parts[1] + ".",
		"two parts":       parts[0] + "." + parts[1],
		"other subject":   parts[0] + "." + with("sub", "system:serviceaccount:default:admin") + "." + parts[2],
		"no expiry":       parts[0] + "." + with("exp", 1<<50) + "." + parts[2],
		"other audience":  parts[0] + "." + with("aud", []string{"other"}) + "." + parts[2],
		"key in header":   encode(map[string]any{"alg": "ES256", "jwk": map[string]string{"kty": "oct", "k": "AAAA"}}) + "." + parts[1] + "." + parts[2],
		"critical header": encode(map[string]any{"alg": "ES256", "crit": []string{"x"}, "x": 1}) + "." + parts[1] + "." + parts[2],
		"encrypted":       strings.Repeat("e30.", 4) + "e30",
		"long":            strings.Repeat("a", 200_000),
		"dots":            strings.Repeat(".", 50_000),
	}
	for _, key := range []string{"", string(t.Admin.CA)} {
		head := encode(map[string]string{"alg": "HS256"}) + "." + parts[1]
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(head))
		forged["HS256 with a key of "+fmt.Sprint(len(key))] = head + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	for name, token := range forged {
		answer, err := t.As(token).Send(ctx, http.MethodGet, "/api", "")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if answer.Code != http.StatusUnauthorized && answer.Code != http.StatusRequestHeaderFieldsTooLarge {
			return fmt.Errorf("a token with %s gets %d", name, answer.Code)
		}
	}
	return attack.Expect(ctx, mallory.Actor, cluster.Request{Path: "/api"}, http.StatusOK)
}

// impersonation impersonates other users without permission, and with partial permission.
func impersonation(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, "")
	if err != nil {
		return err
	}
	half, err := t.User(ctx, `{"verbs":["impersonate"],"apiGroups":[""],"resources":["users"],"resourceNames":["bob"]}`)
	if err != nil {
		return err
	}
	type headers = http.Header
	for _, h := range []headers{
		{"Impersonate-User": {"admin"}},
		{"Impersonate-User": {"system:serviceaccount:default:default"}},
		{"Impersonate-User": {"bob"}, "Impersonate-Group": {"system:masters"}},
		{"impersonate-user": {"bob"}, "IMPERSONATE-GROUP": {"system:masters"}},
		{"Impersonate-User": {"bob", "admin"}, "Impersonate-Group": {"", "system:masters"}},
		{"Impersonate-Group": {"system:masters"}},
		{"Impersonate-User": {"bob"}, "Impersonate-Extra-Scopes": {"all"}},
		{"Impersonate-User": {"bob"}, "Impersonate-Uid": {"1"}},
		{"Impersonate-Uid": {"1"}},
		{"Impersonate-User": {"bob"}},
	} {
		for _, user := range []*attack.User{mallory, half} {
			r := cluster.Request{Path: attack.SecretsPath, Header: h}
			if err := attack.Expect(ctx, user.Actor, r, http.StatusForbidden, http.StatusBadRequest); err != nil {
				return fmt.Errorf("with %v: %w", h, err)
			}
		}
	}
	return nil
}

// peerCalls calls every method of every service with certificates that are not allowed: of
// no service, of a worker, and of another CA.
func peerCalls(ctx context.Context, t *attack.Target) error {
	otherAuthority, err := peertls.NewAuthority()
	if err != nil {
		return err
	}
	for _, c := range []struct {
		authority *peertls.Authority
		names     []string
	}{
		{t.Peers.Authority, []string{"nobody"}},
		{t.Peers.Authority, []string{"csr-signer"}},
		{t.Peers.Authority, []string{"FRONTDOOR"}},
		{t.Peers.Authority, []string{"*.frontdoor"}},
		{t.Peers.Authority, []string{"frontdoor.example.com"}},
		{otherAuthority, []string{"frontdoor"}},
	} {
		files, err := c.authority.Issue(t.Dir, c.names...)
		if err != nil {
			return err
		}
		for _, d := range []grpc.ServiceDesc{porticov1.Store_ServiceDesc, porticov1.WatchHub_ServiceDesc, porticov1.Authn_ServiceDesc,
			porticov1.Authz_ServiceDesc, porticov1.Admission_ServiceDesc} {
			if err := refusedAll(ctx, t, files, d); err != nil {
				return fmt.Errorf("certificate of %v: %w", c.names, err)
			}
		}
	}
	return nil
}

// serving returns the certificate name of the service that implements a contract.
func serving(d grpc.ServiceDesc) string {
	short := d.ServiceName[strings.LastIndex(d.ServiceName, ".")+1:]
	if short == "WatchHub" {
		return "watch-hub"
	}
	return strings.ToLower(short)
}

func refusedAll(ctx context.Context, t *attack.Target, files peertls.Files, d grpc.ServiceDesc) error {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	conn, err := grpc.NewClient(t.Peers.Services[serving(d)], grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	defer conn.Close()
	call := func(method string, stream bool) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		if !stream {
			return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
		}
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
		if err == nil {
			_ = s.SendMsg(&emptypb.Empty{})
			_ = s.CloseSend()
			err = s.RecvMsg(&emptypb.Empty{})
		}
		return err
	}
	var methods []string
	for _, m := range d.Methods {
		methods = append(methods, m.MethodName)
	}
	for i, name := range append(methods, streams(d)...) {
		err := call("/"+d.ServiceName+"/"+name, i >= len(methods))
		switch status.Code(err) {
		case codes.PermissionDenied, codes.Unauthenticated, codes.Unavailable: // the last: no connection
		default:
			return fmt.Errorf("%s/%s is answered %v", d.ServiceName, name, err) //nolint:errorlint // may be nil
		}
	}
	return nil
}

func streams(d grpc.ServiceDesc) (names []string) {
	for _, s := range d.Streams {
		names = append(names, s.StreamName)
	}
	return names
}

// peerAtTheDoor sends peer certificates of services to the front door.
func peerAtTheDoor(ctx context.Context, t *attack.Target) error {
	for _, name := range []string{"frontdoor", "store", "lifecycle"} {
		files, err := t.Peers.Authority.Issue(t.Dir, name)
		if err != nil {
			return err
		}
		code, err := shown(ctx, t, files, attack.SecretsPath)
		if err != nil {
			return err
		}
		if code != 0 && code != http.StatusUnauthorized && code != http.StatusForbidden {
			return fmt.Errorf("the certificate of %s gets %d", name, code)
		}
	}
	return nil
}
