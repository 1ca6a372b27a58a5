package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// kubectl is the stock client with a cluster to talk to.
type kubectl struct {
	program string
	env     []string
}

func newKubectl(t *testing.T, c *cluster.Cluster) *kubectl {
	t.Helper()
	if err := build("../kubectl", root+"/bin/kubectl", []string{"GOWORK=off"}, "."); err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(root + "/bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	return &kubectl{program, append(os.Environ(),
		"KUBECONFIG="+filepath.Join(c.Dir, "kubeconfig"), "HOME="+t.TempDir(),
		"KUBE_EDITOR=sed -i s/replicas:.*/replicas:\\ 4/",
	)}
}

func (k *kubectl) command(ctx context.Context, line string) *exec.Cmd {
	command := exec.CommandContext(ctx, k.program, strings.Fields(line)...)
	command.Env = k.env
	return command
}

// run runs one command line, in which no argument holds a space.
func (k *kubectl) run(t *testing.T, line, input string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := k.command(ctx, line)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", line, err, out)
	}
	return string(out)
}

const applied = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {word: sesame}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: "job:1"}]}}}
`

// step is one command line and what its output has to hold.
type step struct {
	name, line, input string
	want              []string
}

func kubectlSteps() []step {
	changed := strings.ReplaceAll(applied, "blue", "red")
	const path = "jsonpath={.metadata.labels.tier}{.metadata.annotations.note}"
	return []step{
		{"create namespace", "create namespace demo", "", []string{"namespace/demo created"}},
		{"apply", "apply -n demo -f -", applied, []string{
			"deployment.apps/web created", "service/web created", "configmap/settings created", "secret/password created", "cronjob.batch/nightly created"}},
		{"apply again", "apply -n demo -f -", applied, []string{"deployment.apps/web unchanged", "cronjob.batch/nightly unchanged"}},
		{"apply a change", "apply -n demo -f -", changed, []string{"configmap/settings configured", "service/web unchanged"}},
		{"get wide", "get -n demo deployments,services,cronjobs -o wide", "", []string{"NAME", "READY", "IMAGES", "web:1", "CLUSTER-IP", "SCHEDULE", "0 3 * * *"}},
		{"get yaml", "get -n demo configmap settings -o yaml", "", []string{"kind: ConfigMap", "color: red", "namespace: demo"}},
		{"get custom columns", "get -n demo deployment web -o custom-columns=N:.metadata.name,R:.spec.replicas", "", []string{"N", "web", "2"}},
		{"secret", "get -n demo secret password -o jsonpath={.data.word}", "", []string{"c2VzYW1l"}},
		{"edit", "edit -n demo deployment web", "", []string{"deployment.apps/web edited"}},
		{"edited", "get -n demo deployment web -o jsonpath={.spec.replicas}", "", []string{"4"}},
		{"replace", "replace -n demo -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: green}}", []string{"configmap/settings replaced"}},
		{"label", "label -n demo configmap settings tier=front", "", []string{"configmap/settings labeled"}},
		{"annotate", "annotate -n demo configmap settings note=hello", "", []string{"configmap/settings annotated"}},
		{"labelled and annotated", "get -n demo configmap settings -o " + path, "", []string{"fronthello"}},
		{"select", "get -n demo configmaps -l tier=front -o name", "", []string{"configmap/settings"}},
		{"describe", "describe -n demo configmap settings", "", []string{"green", "tier=front"}},
		{"api-resources", "api-resources", "", []string{"deployments", "deploy", "apps/v1", "CronJob", "storageclasses"}},
		{"api-versions", "api-versions", "", []string{"apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"}},
		{"explain", "explain pod.spec", "", []string{"KIND:", "Pod", "containers", "-required-", "nodeName"}},
		{"delete", "delete -n demo deployment/web service/web cronjob/nightly secret/password --wait=false", "", []string{`deployment.apps "web" deleted`, `secret "password" deleted`}},
		{"deleted", "get -n demo deployments,services,cronjobs -o name", "", nil},
	}
}

// TestKubectl works with the stock client as people do.
func TestKubectl(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl")
	}
	a := startAllInOne(t, vocabulary.K8s())
	k := newKubectl(t, a.Cluster)
	for _, s := range kubectlSteps() {
		ok := t.Run(s.name, func(t *testing.T) {
			out := k.run(t, s.line, s.input)
			for _, want := range s.want {
				if !strings.Contains(out, want) {
					t.Errorf("kubectl %s: no %q in\n%s", s.line, want, out)
				}
			}
			if s.want == nil && strings.TrimSpace(out) != "" {
				t.Errorf("kubectl %s: want nothing, got\n%s", s.line, out)
			}
		})
		if !ok && slices.Contains([]string{"create namespace", "apply"}, s.name) {
			t.Fatal("the rest needs what this step makes")
		}
	}
	t.Run("get -w", func(t *testing.T) { watchWithKubectl(t, k) })
	t.Run("delete namespace", func(t *testing.T) { k.run(t, "delete namespace demo --wait=false", "") })
	t.Run("pages", func(t *testing.T) { runPages(t, a) })
}

// watchWithKubectl sees a change arrive in a running get -w.
func watchWithKubectl(t *testing.T, k *kubectl) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := k.command(ctx, "get -n demo configmaps -w -o custom-columns=N:.metadata.name,C:.data.color --no-headers")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- strings.Join(strings.Fields(s.Text()), " ")
		}
	}()
	expect := func(want string) {
		t.Helper()
		deadline := time.After(patience)
		for {
			select {
			case line, open := <-lines:
				if !open {
					t.Fatalf("kubectl ended before %q came", want)
				}
				if line == want {
					return
				}
			case <-deadline:
				t.Fatalf("%q did not come within %v", want, patience)
			}
		}
	}
	expect("settings green")
	k.run(t, "replace -n demo -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: white}}")
	expect("settings white")
	k.run(t, "create configmap -n demo another --from-literal=color=black", "")
	expect("another black")
	cancel()
	for range lines { // until its output ends
	}
	_ = command.Wait()
}
