package tools

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// evil controls a terminal, changes the direction of text and forges a line.
const evil = "\x1b[31mEVIL\x1b]0;title\x07\nUser  forged-admin\tClusterRole view\u202e\u0085"

// TestHostileNames: what others have named is escaped in what the commands print, as text and as JSON, and forges no
// line.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	p, k, c := cluster(t)
	ctx := t.Context()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "evil"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: evil}, {APIGroup: rbacv1.GroupName, Kind: "Group", Name: evil}}}
	if _, err := k.RbacV1().RoleBindings("default").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}, Data: map[string]string{"a": "b"}}
	for _, text := range []string{"b", evil} {
		object.Data["a"] = text
		if _, err := k.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
			if _, err := k.CoreV1().ConfigMaps("default").Update(ctx, object, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	parked(t, p.Config(), "/api/v1/namespaces/%1b%5b31mns%0aforged%e2%80%ae/configmaps?watch=1&labelSelector=evil")
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(c.run("watches", "-o", "json").out, "evil"); {
		if time.Now().After(deadline) {
			t.Fatal("the watch is not listed")
		}
	}
	for _, args := range [][]string{{"who-can", "get", "pods"}, {"explain-access", "--as=" + evil, "get", "pods"}, {"explain-access", "--as=" + evil, "delete", "pods"},
		{"explain-access", "--as=x", "--as-group=" + evil, "get", "pods"}, {"history", "configmaps", "seen"}, {"watches"},
		{"who-can", evil, evil}, {"trace", "get", "/api/v1/" + evil}, {"certs", "list"}, {"top", "--once", "--interval=100ms"}} {
		for _, format := range []string{"text", "json"} {
			r := c.run(append(args, "-o", format)...)
			for _, text := range []string{r.out, r.stderr} {
				if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }); i >= 0 {
					t.Errorf("%q prints %q", args, text[i:min(len(text), i+20)])
				}
				if strings.Contains(text, "\nUser  forged") || strings.Contains(text, "\nforged") {
					t.Errorf("%q prints a forged line: %q", args, text)
				}
			}
		}
	}
	if r := c.run("who-can", "get", "pods"); !strings.Contains(r.out, `User \u001b[31mEVIL`) {
		t.Errorf("who-can: %+v", r)
	}
}

// parked opens a watch until the end of the test.
func parked(t *testing.T, config *rest.Config, path string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("the watch: %s %s", response.Status, text)
	}
}
