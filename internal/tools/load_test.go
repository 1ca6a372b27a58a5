package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-platform/portico/internal/terminal"
	portico "github.com/portico-platform/portico/testing"
)

// loadReport is what load prints as JSON.
type loadReport struct {
	Interrupted bool
	Verbs       []struct {
		Verb             string
		Requests, Errors int64
		P50, P99, Max    float64
	}
	Watchers *struct {
		Watchers, Events int64
		P50              float64
	}
	Errors []struct{ Error, Example string }
}

// gone fails the test if the namespace exists.
func gone(t *testing.T, k *kubernetes.Clientset, namespace string) {
	t.Helper()
	if _, err := k.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s is left: %v", namespace, err)
	}
}

// TestLoad: each verb on several resources, watched, in a namespace that is gone afterwards; then in
// one that others use too, by a user with a client certificate.
func TestLoad(t *testing.T) {
	t.Parallel()
	p, k, c := cluster(t, portico.WithControllers())
	var all loadReport
	c.json(&all, "load", "-n", "load-all", "--verbs=get,list,create,update,patch,apply,delete", "--kinds=configmaps,secrets,pods,deployments",
		"--clients=4", "--objects=32", "--rate=200", "--duration=1s", "--watchers=24", "--labels=3")
	if len(all.Verbs) != 7 || len(all.Errors) > 0 || all.Interrupted {
		t.Errorf("%+v", all)
	}
	for _, v := range all.Verbs {
		if v.Requests == 0 || v.Errors > 0 || v.P50 <= 0 || v.P99 < v.P50 || v.Max < v.P99 {
			t.Errorf("%+v", v)
		}
	}
	if all.Watchers == nil || all.Watchers.Watchers != 24 || all.Watchers.Events == 0 || all.Watchers.P50 <= 0 {
		t.Errorf("watchers: %+v", all.Watchers)
	}
	gone(t, k, "load-all")

	shared := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shared", Labels: map[string]string{"portico-load": "allowed"}}}
	if _, err := k.CoreV1().Namespaces().Create(t.Context(), shared, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Labels: map[string]string{"portico-load": "another"}}}
	if _, err := k.CoreV1().ConfigMaps("shared").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	alice := userOf(t, p, k, "shared")
	quota := file(t, []byte("apiVersion: v1\nkind: LimitRange\nmetadata: {name: x, finalizers: [example.com/never]}\nspec: {limits: [{type: Pod, max: {cpu: 1}}]}\n"))
	if r := alice.run("load", "-n", "shared", "-f", quota, "--verbs=get,create", "--clients=2", "--rate=0", "--objects=4", "--duration=200ms"); r.code != 0 || !strings.Contains(r.out, "get") || strings.Contains(r.out, "403") {
		t.Errorf("%+v", r)
	}
	if left, err := k.CoreV1().LimitRanges("shared").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
	if _, err := k.CoreV1().ConfigMaps("shared").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	refusals(t, c, alice)
	gone(t, k, "none")
}

// userOf returns the tools of a user who may do everything in a namespace, and see that it exists.
func userOf(t *testing.T, p *portico.TestControlPlane, k *kubernetes.Clientset, namespace string) tool {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}}
	if _, err := k.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "alice"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: subjects}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	content, err := p.AddUser("alice").KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	return tool{t, file(t, content)}
}

// refusals are calls that create nothing.
func refusals(t *testing.T, c, alice tool) {
	t.Helper()
	for want, args := range map[string][]string{
		"--namespace: specify one":                   {},
		"--namespace: default exists":                {"-n", "default"},
		"--verbs: unknown verb":                      {"-n", "none", "--verbs=get,watch"},
		"--verbs: the share of get":                  {"-n", "none", "--verbs=get=0"},
		"--verbs: get is specified twice":            {"-n", "none", "--verbs=get,get"},
		"--kinds: no object of":                      {"-n", "none", "--kinds=nodes"},
		"--clients: 0 is not":                        {"-n", "none", "--clients=0"},
		"--watchers: -1 is not":                      {"-n", "none", "--watchers=-1"},
		"--rate: -1 is not":                          {"-n", "none", "--rate=-1"},
		"--duration: 0s is not":                      {"-n", "none", "--duration=0s"},
		"--objects: 16 clients need":                 {"-n", "none", "--objects=3"},
		"--filename: open":                           {"-n", "none", "-f", "/none"},
		"is not one object":                          {"-n", "none", "-f", file(t, []byte("kind: List"))},
		"nodes are not namespaced":                   {"-n", "none", "-f", file(t, []byte("apiVersion: v1\nkind: Node"))},
		`no matches for kind "Widget" in version "x`: {"-n", "none", "-f", file(t, []byte("apiVersion: x.y/v1\nkind: Widget"))},
		"unknown flag":                               {"-n", "none", "--speed=1"},
		`--clients: "many" is not a number`:          {"-n", "none", "--clients=many"},
	} {
		code := 2
		if slices.Contains(args, "-f") || slices.Contains(args, "default") { // not the command is wrong, but the file or the namespace
			code = 1
		}
		if r := c.run(append([]string{"load"}, args...)...); r.code != code || !strings.Contains(r.stderr, want) || r.out != "" {
			t.Errorf("%v: %+v, want %q", args, r, want)
		}
	}
	if r := alice.run("load", "-n", "none", "--duration=1s"); r.code != 1 || !strings.Contains(r.stderr, `cannot get resource "namespaces"`) {
		t.Errorf("a user without rights: %+v", r)
	}
}

// TestLoadInterrupted ends a load in a terminal after it has begun, like Ctrl-C: it prints what it
// measured, deletes its namespace, and leaves no bar.
func TestLoadInterrupted(t *testing.T) {
	t.Parallel()
	_, k, c := cluster(t, portico.WithControllers())
	user, program := terminal.Open(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"--kubeconfig=" + c.config, "load", "-n", "cut", "--duration=1h", "--clients=2", "-o", "json"}, &out, program)
		_ = program.Close()
	}()
	var recorded strings.Builder
	part := make([]byte, 64<<10)
	for {
		n, err := user.Read(part)
		recorded.Write(part[:n])
		if err != nil {
			break // the other end is closed
		}
		if strings.Contains(recorded.String(), ", 1s of 1h0m0s") {
			interrupt()
		}
	}
	var r loadReport
	if err := json.Unmarshal(out.Bytes(), &r); <-code != 0 || err != nil || !r.Interrupted || len(r.Verbs) == 0 {
		t.Errorf("%v %+v %s", err, r, recorded.String())
	}
	if text := recorded.String(); !strings.Contains(text, "objects [") || strings.LastIndex(text, "\x1b[K") < strings.LastIndex(text, "load [") || !strings.Contains(text, "deleting the objects in namespace cut") {
		t.Errorf("%q", text)
	}
	gone(t, k, "cut")
}
