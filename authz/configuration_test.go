package authz

import (
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/authz/internal/config"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// configured is a configuration of a file that a test replaces.
type configured struct {
	*configuration
	t       *testing.T
	metrics *prometheus.Registry
	path    string
	hook    string // an entry that asks a service, which denies
	down    atomic.Bool
}

const (
	configurationHead = "apiVersion: apiserver.config.platform.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	byRoles           = "- {type: RBAC, name: rbac}\n"
)

// configure opens a file with a webhook and RBAC, which allows everything.
func configure(t *testing.T) *configured {
	t.Helper()
	c := &configured{t: t, metrics: prometheus.NewRegistry(), path: filepath.Join(t.TempDir(), "authorization")}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"apiVersion":"authorization.platform.io/v1","kind":"SubjectAccessReview","status":{"denied":true,"reason":"not today"}}`)
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	kubeconfig := filepath.Join(t.TempDir(), "config")
	write(t, kubeconfig, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: %q, certificate-authority: %s}}]\n"+
		"users: [{name: a, user: {token: abc}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n", server.URL, ca))
	c.hook = "- type: Webhook\n  name: corp\n  webhook: {timeout: 3s, cacheUnauthorizedRequests: false, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1,\n" +
		"    failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: " + kubeconfig + "}, matchConditions: [{expression: \"request.user == 'jane'\"}]}\n"
	write(t, c.path, configurationHead+c.hook+byRoles)
	parser, err := config.NewParser(config.Settings{Vocabulary: vocabulary.Platform(), Release: release.V136, Types: allModes})
	if err != nil {
		t.Fatal(err)
	}
	if c.configuration, err = openConfiguration(c.path, parser, c.metrics, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	c.use(map[string]services.Authz{modeRBAC: opinion{decision: services.Decision{Allowed: true, Reason: "a role", Revision: 7}}, modeAlwaysDeny: constant(false)})
	return c
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace replaces the file, and checks how many new files have been used and refused.
func (c *configured) replace(authorizers string, used, refused float64) {
	c.t.Helper()
	write(c.t, c.path, configurationHead+authorizers)
	for range 2 { // a file is refused once
		c.refresh()
	}
	for status, want := range map[string]float64{"success": used, "failure": refused} {
		if got := kittest.Metric(c.t, c.metrics, "apiserver_authorization_config_controller_automatic_reloads_total", status); got != want {
			c.t.Errorf("%s: %v, not %v", status, got, want)
		}
	}
}

// wants checks what a user may do.
func (c *configured) wants(user string, want services.Decision) {
	c.t.Helper()
	d, err := c.Authorize(c.t.Context(), services.Attributes{User: services.UserInfo{Name: user}, Verb: "get", Resource: "pods"})
	if err != nil || d.Allowed != want.Allowed || d.Denied != want.Denied || d.Reason != want.Reason || d.Revision != 0 {
		c.t.Errorf("%s: %+v, %v", user, d, err)
	}
	results, err := c.AuthorizeBatch(c.t.Context(), []services.Attributes{{User: services.UserInfo{Name: user}, Verb: "get", Resource: "pods"}})
	if err != nil || results[0].Decision != d || results[0].Err != nil {
		c.t.Errorf("%s in a batch: %+v, %v; alone %+v", user, results, err, d)
	}
}

// TestConfiguration: the authorizers of a file are asked in its order, and replaced with it.
func TestConfiguration(t *testing.T) {
	byRole, byHook := services.Decision{Allowed: true, Reason: "a role"}, services.Decision{Denied: true, Reason: "not today"}
	c := configure(t)
	c.wants("jane", byHook)
	c.wants("bob", byRole)
	c.down.Store(true)
	c.wants("jane", services.Decision{Denied: true, Reason: "the authorization webhook gives no answer"})
	c.down.Store(false)

	c.replace(byRoles+c.hook, 1, 0)
	c.wants("jane", byRole)
	c.replace(strings.Replace(c.hook, "jane", "bob", 1)+byRoles+"- {type: AlwaysDeny, name: alwaysdeny}\n", 2, 0)
	c.wants("jane", byRole)
	c.wants("bob", byHook)
	c.replace(c.hook+byRoles, 3, 0)
	c.wants("jane", byHook)

	master := services.UserInfo{Name: "jane", Groups: []string{services.GroupMasters}}
	if d, err := c.Authorize(t.Context(), services.Attributes{User: master, Verb: "get", Resource: "pods"}); err != nil || !d.Allowed || d.Revision == 0 {
		t.Errorf("system:masters: %+v, %v", d, err)
	}
}

// TestRefusedConfigurations: an invalid file changes nothing, and neither does one that turns
// roles off or needs what was not followed from the start.
func TestRefusedConfigurations(t *testing.T) {
	c := configure(t)
	for i, authorizers := range []string{"", "- {type: RBAC}\n", c.hook, c.hook + byRoles + "- {type: Node, name: node}\n", strings.Replace(c.hook, "jane'", "", 1) + byRoles} {
		c.replace(authorizers, 0, float64(i+1))
		c.wants("jane", services.Decision{Denied: true, Reason: "not today"})
	}
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	c.refresh()
	c.wants("bob", services.Decision{Allowed: true, Reason: "a role"})
	c.replace(byRoles, 1, 6)
	c.wants("jane", services.Decision{Allowed: true, Reason: "a role"})
}
