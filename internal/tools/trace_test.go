package tools

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/internal/tools/servertiming"
)

// stagesOf returns the names of the stages, and checks that their times are possible.
func stagesOf(t *testing.T, r timedRequest) string {
	t.Helper()
	names := " "
	for _, s := range r.Stages {
		names += s.Name + " "
		if s.Milliseconds < 0 || s.Start != nil && *s.Start+s.Milliseconds > r.Total+1 {
			t.Errorf("%s: %+v of %v ms", r.Path, s, r.Total)
		}
	}
	if r.Total <= 0 || r.Client <= 0 {
		t.Errorf("%s: %v ms in the front door, %v ms for the client", r.Path, r.Total, r.Client)
	}
	return names
}

func TestTrace(t *testing.T) {
	t.Parallel()
	p, k, c := cluster(t)
	if _, err := k.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := file(t, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made"}}`))
	for name, run := range map[string]struct {
		args   []string
		path   string
		code   int
		stages []string
	}{
		"list":      {[]string{"trace", "get", "cm"}, "/api/v1/namespaces/default/configmaps", http.StatusOK, []string{"authenticated", "authorized", "limited", "read", "encoded"}},
		"get":       {[]string{"trace", "get", "configmaps", "seen"}, "/api/v1/namespaces/default/configmaps/seen", http.StatusOK, []string{"authorized", "read", "encoded"}},
		"group":     {[]string{"trace", "list", "deployments", "-A"}, "/apis/apps/v1/deployments", http.StatusOK, []string{"authorized", "read", "encoded"}},
		"path":      {[]string{"trace", "get", "/version"}, "/version", http.StatusOK, []string{"authenticated", "authorized"}},
		"write":     {[]string{"trace", "POST", "/api/v1/namespaces/default/configmaps", "--data=" + object}, "/api/v1/namespaces/default/configmaps", http.StatusCreated, []string{"received", "admission", "admitted", "validated", "stored", "encoded"}},
		"not found": {[]string{"trace", "get", "configmaps", "none"}, "/api/v1/namespaces/default/configmaps/none", http.StatusNotFound, []string{"authorized", "read"}},
	} {
		var r timedRequest
		c.json(&r, run.args...)
		names := stagesOf(t, r)
		for _, want := range run.stages {
			if !strings.Contains(names, " "+want+" ") {
				t.Errorf("%s: no %s in%s", name, want, names)
			}
		}
		if r.Code != run.code || r.Path != run.path || (r.Bytes == 0) != (run.code == http.StatusNotFound) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := c.run("trace", "get", "configmaps", "seen"); r.code != 0 || !strings.Contains(r.out, "STAGE") || !strings.Contains(r.out, "█") || !strings.Contains(r.out, "authorized") {
		t.Errorf("%+v", r)
	}
	if r := c.run("trace", "get", "configmaps", "none"); r.code != 1 || !strings.Contains(r.out, "STAGE") || !strings.Contains(r.stderr, `"none" not found`) {
		t.Errorf("an object that does not exist: %+v", r)
	}
	for name, args := range map[string][]string{"verb": {"trace", "watch", "configmaps"}, "watch": {"trace", "get", "/api/v1/configmaps?watch=true"}, "no name": {"trace", "delete", "configmaps"},
		"type": {"trace", "get", "nothing"}, "data": {"trace", "POST", "/api/v1/namespaces", "--data=" + object + ".none"}, "two": {"trace", "get", "/api", "name"}, "scope": {"trace", "get", "cm", "a", "-A"}} {
		if r := c.run(args...); r.code != map[bool]int{true: 2, false: 1}[name == "scope"] || r.stderr == "" || r.out != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	content, err := p.AddUser("alice", "staff").KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	alice := tool{t, file(t, content)}
	if r := alice.run("trace", "get", "/api/v1/namespaces/default/configmaps"); r.code != 1 || !strings.Contains(r.stderr, "/debug/portico/v1/timings") {
		t.Errorf("a user without the right to see times: %+v", r)
	}
}

// TestTimingsAreRead: entries that are malformed are left out.
func TestTimingsAreRead(t *testing.T) {
	h := http.Header{"Server-Timing": {"total;dur=10;start=0", `a-b;dur=5.000;start=2.5;desc="a/b"`, `admission-service;desc="x.example";dur=1`,
		"cache", "b;dur=x", ";;", "c;dur=1, d;dur=2;start=-1", "e\x1b;dur=1", "far;dur=1e300;start=1e300"}}
	var r timedRequest
	var known bool
	if r.Total, r.Stages, known = servertiming.Parse(h); !known || r.Total != 10 || stagesNamed(r) != "a/b,admission-service x.example,c,d,far" {
		t.Errorf("%+v", r)
	}
	for _, s := range r.Stages {
		if s.Start != nil {
			if bar := []rune(r.bar(s)); len(bar) > barWidth || len(bar) == 0 {
				t.Errorf("%s: %q", s.Name, string(bar))
			}
		}
	}
	if got := r.bar(r.Stages[0]); got != strings.Repeat("·", 10)+strings.Repeat("█", 20) {
		t.Errorf("%q", got)
	}
}

func stagesNamed(r timedRequest) string {
	var names []string
	for _, s := range r.Stages {
		names = append(names, s.Name)
	}
	return strings.Join(names, ",")
}
