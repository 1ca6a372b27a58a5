package tools

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	portico "github.com/portico-platform/portico/testing"
)

// result is what a command wrote.
type result struct {
	code        int
	out, stderr string
}

// tool runs commands against a control plane.
type tool struct {
	t      *testing.T
	config string
}

func (c tool) run(args ...string) result {
	c.t.Helper()
	var out, stderr bytes.Buffer
	code := Main(c.t.Context(), append([]string{"--kubeconfig=" + c.config}, args...), &out, &stderr)
	return result{code, out.String(), stderr.String()}
}

// json runs a command with JSON output.
func (c tool) json(into any, args ...string) {
	c.t.Helper()
	r := c.run(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		c.t.Fatalf("%v: %v %+v", args, err, r)
	}
}

// cluster starts a control plane in which the group staff may view the namespace default.
func cluster(t *testing.T, options ...portico.Option) (*portico.TestControlPlane, *kubernetes.Clientset, tool) {
	t.Helper()
	p := portico.Start(t, options...)
	c, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "staff"}}}
	if _, err := c.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return p, c, tool{t, p.KubeConfig()}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	_, _, c := cluster(t)
	for name, run := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"who":          {[]string{"who-can", "get", "pods"}, 0, []string{"Group staff", "ClusterRole view", "RoleBinding default/viewers", "Group system:masters"}},
		"short name":   {[]string{"who-can", "get", "po/a"}, 0, []string{"Group staff"}},
		"path":         {[]string{"who-can", "get", "/healthz"}, 0, []string{"Group system:monitoring", "ClusterRoleBinding system:monitoring"}},
		"yes":          {[]string{"explain-access", "--as=alice", "--as-group=staff", "get", "pods"}, 0, []string{"yes: alice may get pods in namespace default", "ClusterRole view <- RoleBinding default/viewers <- Group staff"}},
		"no":           {[]string{"explain-access", "--as=alice", "--as-group=staff", "delete", "pods"}, 1, []string{"no: alice may not delete pods", "ClusterRole view <- RoleBinding default/viewers", "ClusterRole edit"}},
		"elsewhere":    {[]string{"explain-access", "--as=alice", "--as-group=staff", "-n", "other", "get", "pods"}, 1, []string{"no: alice"}},
		"account":      {[]string{"explain-access", "--as=system:serviceaccount:default:bot", "get", "deployments.apps", "--subresource=scale"}, 1, []string{"system:serviceaccounts:default"}},
		"completion":   {[]string{"completion", "bash"}, 0, []string{"__start_portico"}},
		"wrong type":   {[]string{"who-can", "get", "nothing"}, 1, nil},
		"wrong output": {[]string{"who-can", "get", "pods", "-o", "xml"}, 2, nil},
		"nobody":       {[]string{"explain-access", "get", "pods"}, 1, nil},
	} {
		r := c.run(run.args...)
		for _, want := range run.says {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: no %q in %+v", name, want, r)
			}
		}
		if r.code != run.code || (run.says == nil) != (r.stderr != "") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	var e explanation
	c.json(&e, "explain-access", "--as=alice", "--as-group=staff", "get", "pods")
	if !e.Allowed || len(e.Chain) != 1 || e.Chain[0].Rule == nil || e.Request.Namespace != "default" {
		t.Errorf("%+v", e)
	}
	certificatesOf(t, c)
}

// TestOwnRights: the tools can do no more than their user.
func TestOwnRights(t *testing.T) {
	t.Parallel()
	p, _, _ := cluster(t)
	content, err := p.AddUser("alice", "staff").KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	c := tool{t, file(t, content)}
	if r := c.run("who-can", "get", "pods"); r.code != 1 || !strings.Contains(r.stderr, `User "alice" cannot list resource "clusterroles"`) {
		t.Errorf("%+v", r)
	}
}
