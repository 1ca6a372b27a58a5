// Package matrix shows every kind of credentials, valid and spoiled in every way, to a front door
// and to the services behind it, and compares what happens with docs/security-matrix.md.
package matrix

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rawhttp"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// scene is a suite that trusts the identities.
type scene struct {
	*Identities
	*attack.Target
	roots *x509.CertPool
}

// Run fills the tables of the document that the suite has. Those of ports need separate
// processes.
func Run(t *testing.T, i *Identities, target *attack.Target) {
	s := &scene{i, target, x509.NewCertPool()}
	s.roots.AppendCertsFromPEM(target.Admin.CA)
	s.awaitIssuer(t)
	var columns []string
	all := s.authenticators(t)
	for _, a := range all {
		columns = append(columns, a.name)
	}
	grid := newTable("credentials", columns...)
	for _, condition := range conditions {
		var cells []string
		for _, a := range all {
			cell := "–"
			if shown, ok := a.attempts[condition]; ok {
				cell = s.outcome(t, shown)
			}
			cells = append(cells, cell)
		}
		grid.add(condition, cells...)
	}
	compare(t, "authenticators", grid)
	compare(t, "impersonation", s.impersonation(t))
	compare(t, "front door", s.smuggling(t))
	compare(t, "browsers", s.browsers(t))
	if target.Peers != nil {
		compare(t, "ports", s.ports(t))
	}
}

// awaitIssuer waits until authn has found the OpenID Connect issuer: it looks for it in the
// background.
func (s *scene) awaitIssuer(t *testing.T) {
	t.Helper()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	good := s.idTokens(t)[valid]
	for deadline := time.Now().Add(20 * time.Second); s.outcome(t, attempt{headers: []string{"Authorization: Bearer " + good}}) != "olga"; <-ticks.C {
		if time.Now().After(deadline) {
			t.Fatal("authn does not find the issuer")
		}
	}
}

// refusal finds who the caller of a request is that is not allowed.
var refusal = regexp.MustCompile(`User "([^"]*)" cannot ([\w:-]+) `)

// outcome makes a request that nobody of the table may make, and returns the user whom the front
// door has refused, or what else it has answered.
func (s *scene) outcome(t *testing.T, shown attempt) string {
	t.Helper()
	return outcomeOf(s.exchange(t, shown))
}

// outcomeOf returns the outcome of an answer.
func outcomeOf(code int, body string) string {
	switch {
	case code == 0:
		return "no answer"
	case code != http.StatusForbidden:
		return fmt.Sprint(code)
	}
	var status cluster.Status
	_ = json.Unmarshal([]byte(body), &status) // an empty message finds nothing
	found := refusal.FindStringSubmatch(status.Message)
	switch {
	case found == nil:
		return "403"
	case strings.HasPrefix(found[2], "impersonate"):
		return "403 for " + found[1]
	case len(found[1]) > 100:
		return fmt.Sprintf("%s… (%d KB)", found[1][:5], len(found[1])/1000)
	}
	return strings.Replace(found[1], "system:serviceaccount:default:", "account ", 1)
}

// exchange sends one request with headers as they are, and returns the answer; 0 if there is
// none.
func (s *scene) exchange(t *testing.T, shown attempt) (int, string) {
	t.Helper()
	return s.send(t, rawhttp.Head(http.MethodGet, attack.SecretsPath, append(shown.headers, "Connection: close")...), shown.certificate)
}

// send is exchange for a request line and headers.
func (s *scene) send(t *testing.T, head string, certificate *tls.Certificate) (int, string) {
	t.Helper()
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{ServerName: host, RootCAs: s.roots, NextProtos: []string{"http/1.1"}}
	if certificate != nil { // also one that a client would not send
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: config}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.Address)
	if err != nil {
		return 0, ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { _, _ = io.WriteString(conn, head+"\r\n\r\n") }() // the server may answer before it has read everything
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body) // of an answer that is cut off the beginning is enough
	return response.StatusCode, string(body)
}
