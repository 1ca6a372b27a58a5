package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	classes    = "/apis/storage.k8s.io/v1/volumeattributesclasses"
	budgets    = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"
)

// testMixed adds a front door of an earlier emulated version to a suite: both serve the types of
// both, and the doctor says that the suite is rolling.
func (p *patient) testMixed(t *testing.T) {
	i := slices.IndexFunc(programs(), func(p program) bool { return p.name == "frontdoor" })
	older := programs()[i]
	p.add(t, "frontdoor", "older")
	older.replica, older.args = "older", []string{"--emulated-version=1.21", "--audit-log-path=" + filepath.Join(p.logs, "older.audit")}
	p.startWatched(t, older)
	old := p.connect(t, "older")
	eventually(t, "both know each other", func() bool {
		return strings.Contains(discovered(t, old, ""), " storage.k8s.io/v1/volumeattributesclasses ") && strings.Contains(discovered(t, p.Cluster, ""), " policy/v1beta1/poddisruptionbudgets/status ")
	})
	if discovered(t, old, "") != discovered(t, p.Cluster, "") {
		t.Error("the front doors show different types")
	}
	if own := discovered(t, old, ";profile=nopeer"); strings.Contains(own, "volumeattributesclasses") || !strings.Contains(own, " policy/v1beta1/") {
		t.Errorf("what the older one serves by itself: %s", own)
	}
	p.mixedClients(t, old)
	p.mixedRights(t, old)
	status, found := p.examine(t)
	if status != 0 || !found.has("WARN", "skew", "emulated 1.21 (") {
		t.Errorf("the doctor says %+v", found)
	}
	p.end(t, "older")
	eventually(t, "types of the older one are not served", func() bool {
		return p.Ask(t, cluster.Request{Path: budgets}).Code == http.StatusNotFound && !strings.Contains(discovered(t, p.Cluster, ""), " policy/v1beta1/")
	})
	p.mixedAudit(t)
}

// discovered returns the types and subresources that a front door shows, sorted, each between spaces.
func discovered(t *testing.T, c *cluster.Cluster, profile string) string {
	t.Helper()
	var all []string
	for _, path := range []string{"/api", "/apis"} {
		var list apidiscovery.APIGroupDiscoveryList
		answer := c.Ask(t, cluster.Request{Path: path, Header: http.Header{"Accept": {aggregated + profile}}})
		if err := json.Unmarshal([]byte(answer.Body), &list); err != nil {
			t.Fatalf("%s: %d %v", path, answer.Code, err)
		}
		for _, g := range list.Items {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					name := g.Name + "/" + v.Version + "/" + r.Resource
					all = append(all, name)
					for _, s := range r.Subresources {
						all = append(all, name+"/"+s.Subresource)
					}
				}
			}
		}
	}
	slices.Sort(all)
	return " " + strings.Join(all, " ") + " "
}

// mixedClients reads, writes and watches a type of the newer front door through the older one.
func (p *patient) mixedClients(t *testing.T, old *cluster.Cluster) {
	k, server := newKubectl(t, p.Cluster), "--server=https://"+p.addresses["older"]+" "
	k.run(t, server+"create -f - --validate=ignore", `{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttributesClass","metadata":{"name":"fast"},"driverName":"d","parameters":{"a":"b"}}`)
	if out := k.run(t, server+"get volumeattributesclasses", ""); !strings.Contains(out, "DRIVERNAME") || !strings.Contains(out, "fast") {
		t.Errorf("kubectl get shows %s", out)
	}
	watch, err := old.Send(t.Context(), cluster.Request{Path: classes + "?watch=1&resourceVersion=0"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	events := bufio.NewScanner(watch.Body)
	if !events.Scan() || !strings.Contains(events.Text(), `"ADDED"`) {
		t.Fatalf("the watch has %d %s", watch.StatusCode, events.Text())
	}
	k.run(t, server+`patch volumeattributesclass fast --type=merge -p {"metadata":{"labels":{"patched":"yes"}}}`, "")
	if !events.Scan() || !strings.Contains(events.Text(), `"MODIFIED"`) || !strings.Contains(events.Text(), `"patched":"yes"`) {
		t.Errorf("the watch has %s", events.Text())
	}
	answer := old.Ask(t, cluster.Request{Path: classes + "/fast"})
	if answer.Code != http.StatusOK || len(answer.Header.Values("Audit-Id")) != 1 || len(answer.Header.Values("Cache-Control")) != 1 {
		t.Errorf("the headers %v", answer.Header)
	}
	invalid := old.Ask(t, post(classes, `{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttributesClass","metadata":{"name":"x"}}`))
	if invalid.Code != http.StatusUnprocessableEntity || !strings.Contains(invalid.Body, "driverName") {
		t.Errorf("an invalid object: %d %s", invalid.Code, invalid.Body)
	}
	ok(t, p.Cluster, post(budgets, `{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"b"},"spec":{"selector":{}}}`))
	if got := p.Ask(t, cluster.Request{Path: "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b"}); got.Code != http.StatusOK {
		t.Errorf("what the older one has stored: %d %s", got.Code, got.Body)
	}
}

// mixedRights: the rights are those of the caller, and no header gives others.
func (p *patient) mixedRights(t *testing.T, old *cluster.Cluster) {
	for what, c := range map[string]struct {
		header http.Header
		code   int
	}{
		"impersonated":   {http.Header{"Impersonate-User": {"jane"}}, http.StatusForbidden},
		"already handed": {http.Header{"X-Kubernetes-Peer-Proxied": {"true"}}, http.StatusNotFound},
		"forged": {http.Header{"Impersonate-User": {"jane"}, "X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"},
			"X-Portico-Forwarded": {"eyJVc2VyIjp7Ik5hbWUiOiJhIiwiR3JvdXBzIjpbInN5c3RlbTptYXN0ZXJzIl19LCJDYWxsZXIiOnsiTmFtZSI6ImEifX0="}}, http.StatusForbidden},
	} {
		if got := old.Ask(t, cluster.Request{Path: classes + "/fast", Header: c.header}); got.Code != c.code {
			t.Errorf("%s: %d %s, want %d", what, got.Code, got.Body, c.code)
		}
	}
	if own := p.Ask(t, cluster.Request{Path: classes + "/fast", Header: http.Header{"X-Kubernetes-Peer-Proxied": {"true"}}}); own.Code != http.StatusOK {
		t.Errorf("the header refuses what the front door serves itself: %d", own.Code)
	}
}

// mixedAudit: a request is in the logs of both front doors, under one ID.
func (p *patient) mixedAudit(t *testing.T) {
	type event struct {
		AuditID, RequestURI, Verb, Stage string
		User                             struct{ Username string }
		ImpersonatedUser                 *struct{ Username string }
		SourceIPs                        []string
		Annotations                      map[string]string
	}
	find := func(file string, want func(event) bool) (found event) {
		eventually(t, "the request is in "+file, func() bool {
			content, err := os.ReadFile(filepath.Join(p.logs, file))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(content)) {
				var e event
				if json.Unmarshal([]byte(line), &e) == nil && e.Stage == "ResponseComplete" && want(e) {
					found = e
					return true
				}
			}
			return false
		})
		return found
	}
	first := find("older.audit", func(e event) bool { return e.Verb == "patch" && strings.HasPrefix(e.RequestURI, classes+"/fast") })
	second := find("frontdoor.audit", func(e event) bool { return e.AuditID == first.AuditID })
	if first.Annotations["portico/forwarded-to"] == "" || second.Annotations["portico/forwarded-by"] == "" || first.User != second.User ||
		!slices.Equal(first.SourceIPs, second.SourceIPs) || second.RequestURI != first.RequestURI {
		t.Errorf("the events %+v and %+v", first, second)
	}
}
