package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
)

// act is one command line with the expected result. Arguments contain no spaces.
type act struct {
	line, input string
	code        int
	want, not   []string // in the output, errors included
}

// try runs one command line and returns its output and exit code.
func (k *kubectl) try(t *testing.T, line, input string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := k.command(ctx, line)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", line, err, out)
	}
	return string(out), 0
}

// play runs command lines one after the other; the first that fails ends it.
func (k *kubectl) play(t *testing.T, acts ...act) {
	t.Helper()
	for _, a := range acts {
		out, code := k.try(t, a.line, a.input)
		if code != a.code {
			t.Fatalf("kubectl %s: exit code %d, want %d\n%s", a.line, code, a.code, out)
		}
		for _, want := range a.want {
			if !strings.Contains(out, want) {
				t.Fatalf("kubectl %s: no %q in\n%s", a.line, want, out)
			}
		}
		for _, not := range a.not {
			if strings.Contains(out, not) {
				t.Fatalf("kubectl %s: %q in\n%s", a.line, not, out)
			}
		}
	}
}

// with returns the same client with other variables.
func (k *kubectl) with(variables ...string) *kubectl {
	return &kubectl{k.program, append(k.env[:len(k.env):len(k.env)], variables...)}
}

// webManifest is a Deployment with an image and a number of replicas; more goes into
// its container.
func webManifest(image, replicas, more string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: ` + replicas + `, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "` + image + `"` + more + `}]}}}}`
}

const (
	image    = "-o jsonpath={.spec.template.spec.containers[*].image}"
	managers = "--show-managed-fields -o jsonpath={range.metadata.managedFields[*]}{.manager}/{.operation}/{.subresource};{end}"
)

// TestKubectlWrites changes objects with the stock client in all the ways it has.
func TestKubectlWrites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl")
	}
	k := newKubectl(t, startAllInOne(t, vocabulary.K8s()).Cluster)
	for name, scene := range map[string]func(t *testing.T, k *kubectl){
		"apply": kubectlApply, "server-side": kubectlServerSide, "migration": kubectlMigration, "patch": kubectlPatch,
		"diff": kubectlDiff, "edit": kubectlEdit, "scale": kubectlScale, "replace": kubectlReplace, "set": kubectlSet,
		"dry-run": kubectlDryRun, "cascade": kubectlCascade, "wait": kubectlWait, "auth": kubectlAuth, "custom": kubectlCustom,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k.play(t, act{line: "create namespace " + name})
			scene(t, k.in(t, name))
		})
	}
}

// in returns the client with a namespace for one test.
func (k *kubectl) in(t *testing.T, namespace string) *kubectl {
	t.Helper()
	config, _ := k.try(t, "config view --raw --flatten", "")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	own := k.with("KUBECONFIG=" + file)
	own.play(t, act{line: "config set-context --current --namespace=" + namespace})
	return own
}

func kubectlApply(t *testing.T, k *kubectl) {
	k.play(t,
		act{line: "apply -f -", input: webManifest("web:1", "2", ", env: [{name: A, value: a}]"), want: []string{"deployment.apps/web created"}},
		act{line: "label deployment web by=hand"},
		act{line: "apply -f -", input: webManifest("web:2", "2", ""), want: []string{"deployment.apps/web configured"}},
		act{line: "get deployment web -o yaml", want: []string{"image: web:2", "by: hand", "last-applied-configuration", "generation: 2"}, not: []string{"name: A"}},
		act{line: "apply -f -", input: webManifest("web:2", "2", ""), want: []string{"deployment.apps/web unchanged"}},
		act{line: "apply -f -", input: webManifest("web:2", "2", ", imagee: x"), code: 1, want: []string{"strict decoding error", "unknown field", "imagee"}},
		act{line: "apply --validate=warn -f -", input: webManifest("web:2", "3", ", imagee: x"), want: []string{"Warning: unknown field", "configured"}},
		act{line: "apply -f -", input: webManifest("web:2", "-1", ""), code: 1, want: []string{`The Deployment "web" is invalid`, "spec.replicas"}},
		act{line: "apply -f -", input: strings.Replace(webManifest("web:2", "2", ""), "matchLabels: {app: web}", "matchLabels: {app: other}", 1), code: 1,
			want: []string{"is invalid", "spec.selector"}},
		act{line: "apply -f -", input: "{apiVersion: v1, kind: Nothing, metadata: {name: a}}", code: 1, want: []string{`no matches for kind "Nothing"`}},
	)
}

func kubectlServerSide(t *testing.T, k *kubectl) {
	done := []string{"deployment.apps/web serverside-applied"}
	k.play(t,
		act{line: "apply --server-side -f -", input: webManifest("web:1", "2", ""), want: done},
		act{line: "set image deployment/web web=web:2", want: []string{"image updated"}},
		act{line: "apply --server-side -f -", input: webManifest("web:3", "2", ""), code: 1,
			want: []string{"1 conflict", `"kubectl-set"`, `.spec.template.spec.containers[name="web"].image`, "--force-conflicts"}},
		act{line: "get deployment web " + image, want: []string{"web:2"}},
		act{line: "apply --server-side --force-conflicts -f -", input: webManifest("web:3", "2", ""), want: done},
		act{line: "get deployment web " + managers, want: []string{"kubectl/Apply/;"}, not: []string{"kubectl-set"}},
		act{line: "apply --server-side --field-manager=other -f -", input: webManifest("web:3", "2", ", env: [{name: A, value: a}]"), want: done},
		act{line: "apply --server-side --field-manager=other -f -", input: webManifest("web:3", "2", ""), want: done},
		act{line: "get deployment web -o yaml", want: []string{"image: web:3"}, not: []string{"name: A"}},
		act{line: "scale deployment web --replicas=5", want: []string{"scaled"}},
		act{line: "get deployment web " + managers, want: []string{"other/Apply/;", "/Update/scale;"}},
		act{line: "apply --server-side -f -", input: webManifest("web:3", "2", ""), code: 1, want: []string{"conflict", ".spec.replicas"}},
		act{line: "apply --server-side -f -", input: strings.Replace(webManifest("web:3", "2", ""), "replicas: 2, ", "", 1), want: done},
		act{line: "get deployment web -o jsonpath={.spec.replicas}", want: []string{"5"}},
	)
}

// kubectlMigration goes over from client-side to server-side apply: what was applied
// before belongs to the same manager, who can take it away.
func kubectlMigration(t *testing.T, k *kubectl) {
	done := []string{"deployment.apps/web serverside-applied"}
	k.play(t,
		act{line: "apply -f -", input: webManifest("web:1", "2", ", env: [{name: A, value: a}]")},
		act{line: "get deployment web " + managers, want: []string{"kubectl-client-side-apply/Update/;"}},
		act{line: "apply --server-side -f -", input: webManifest("web:2", "2", ", env: [{name: A, value: a}]"), want: done},
		act{line: "get deployment web " + managers, want: []string{"kubectl/Apply/;"}, not: []string{"kubectl-client-side-apply"}},
		act{line: "apply --server-side -f -", input: webManifest("web:2", "2", ""), want: done},
		act{line: "get deployment web -o yaml", want: []string{"image: web:2"}, not: []string{"name: A"}},
		act{line: "apply -f -", input: webManifest("web:4", "2", ""), want: []string{"deployment.apps/web configured"}},
		act{line: "get deployment web " + image, want: []string{"web:4"}},
	)
}

func kubectlPatch(t *testing.T, k *kubectl) {
	const replicas = "get deployment web -o jsonpath={.spec.replicas}"
	patched, containers := []string{"deployment.apps/web patched"}, "get deployment web -o jsonpath={.spec.template.spec.containers[*].name}"
	k.play(t,
		act{line: "create -f -", input: webManifest("web:1", "2", "")},
		act{line: `patch deployment web --type=json -p [{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":3}]`, want: patched},
		act{line: replicas, want: []string{"3"}},
		act{line: `patch deployment web --type=json -p [{"op":"test","path":"/spec/replicas","value":9}]`, code: 1, want: []string{"request is invalid", "/spec/replicas"}},
		act{line: `patch deployment web --type=merge -p {"spec":{"replicas":4}}`, want: patched},
		act{line: `patch deployment web --type=merge -p {"spec":{"replicas":4}}`, want: []string{"patched (no change)"}},
		act{line: `patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`, want: patched},
		act{line: containers, want: []string{"web", "side"}},
		act{line: `patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}`, want: patched},
		act{line: containers, want: []string{"web"}, not: []string{"side"}},
		act{line: `patch deployment web --type=merge -p {"spec":{"template":{"spec":{"containers":[{"name":"only","image":"only:1"}]}}}}`, want: patched},
		act{line: containers, want: []string{"only"}, not: []string{"web"}},
		act{line: `patch deployment web --subresource=status --type=merge -p {"spec":{"replicas":9},"status":{"replicas":4,"readyReplicas":1}}`, want: patched},
		act{line: "get deployment web", want: []string{"READY", "1/4"}},
		act{line: `patch deployment web --subresource=scale --type=merge -p {"spec":{"replicas":6}}`, want: []string{"patched"}},
		act{line: replicas, want: []string{"6"}},
		act{line: `patch deployment web --type=merge -p {"spec":{"replicas":"many"}}`, code: 1, want: []string{"spec.replicas"}},
		act{line: `patch deployment nothing --type=merge -p {}`, code: 1, want: []string{"NotFound", `"nothing" not found`}},
	)
}

func kubectlScale(t *testing.T, k *kubectl) {
	const rest = `spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`
	k.play(t,
		act{line: "create -f -", input: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, " + strings.Replace(rest, "{replicas", "{serviceName: a, replicas", 1)},
		act{line: "create -f -", input: "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, " + rest},
		act{line: "create -f -", input: "{apiVersion: v1, kind: ReplicationController, metadata: {name: a}, " + strings.Replace(rest, "{matchLabels: {a: b}}", "{a: b}", 1)},
		act{line: "scale statefulset/a replicaset/a replicationcontroller/a --replicas=3", want: []string{"statefulset.apps/a scaled", "replicaset.apps/a scaled", "replicationcontroller/a scaled"}},
		act{line: "get sts,rs,rc -o jsonpath={.items[*].spec.replicas}", want: []string{"3 3 3"}},
		act{line: "scale sts a --current-replicas=3 --replicas=4", want: []string{"scaled"}},
		act{line: "get sts a --subresource=scale", want: []string{"DESIRED", "AVAILABLE", "4"}},
		act{line: "scale sts a --current-replicas=3 --replicas=5", code: 1, want: []string{"Expected replicas to be 3, was 4"}},
		act{line: "scale sts nothing --replicas=5", code: 1, want: []string{"not found"}},
	)
}

func kubectlReplace(t *testing.T, k *kubectl) {
	const identity = "get deployment web -o jsonpath={.metadata.uid}"
	k.play(t,
		act{line: "replace -f -", input: webManifest("web:1", "2", ""), code: 1, want: []string{"NotFound"}},
		act{line: "create --save-config -f -", input: webManifest("web:1", "2", ""), want: []string{"created"}},
		act{line: "create -f -", input: webManifest("web:1", "2", ""), code: 1, want: []string{"AlreadyExists", "already exists"}},
		act{line: "label deployment web by=hand"})
	before, _ := k.try(t, identity, "")
	k.play(t,
		act{line: "replace -f -", input: webManifest("web:2", "2", ""), want: []string{"deployment.apps/web replaced"}},
		act{line: identity, want: []string{before}},
		act{line: "get deployment web --show-labels", not: []string{"by=hand"}},
		act{line: "replace --force -f -", input: strings.ReplaceAll(webManifest("web:3", "2", ""), "app: web", "app: other"), want: []string{"deleted", "replaced"}},
		act{line: identity, not: []string{before}},
		act{line: "get deployment web " + image, want: []string{"web:3"}})
}

func kubectlSet(t *testing.T, k *kubectl) {
	k.play(t,
		act{line: "create deployment web --image=web:1 --port=80", want: []string{"deployment.apps/web created"}},
		act{line: "set image deployment/web web=web:2", want: []string{"image updated"}},
		act{line: "set env deployment/web A=b", want: []string{"env updated"}},
		act{line: "set resources deployment/web --limits=cpu=1,memory=1Gi", want: []string{"resource requirements updated"}},
		act{line: "get deployment web -o yaml", want: []string{"image: web:2", "name: A", "value: b", "memory: 1Gi"}},
		act{line: "label deployment web tier=front", want: []string{"labeled"}},
		act{line: "label deployment web tier=back", code: 1, want: []string{"--overwrite is false"}},
		act{line: "label deployment web tier=back --overwrite --resource-version=1", code: 1, want: []string{"Conflict", "the object has been modified"}},
		act{line: "label deployment web tier-", want: []string{"unlabeled"}},
		act{line: "expose deployment web --port=80", want: []string{"service/web exposed"}},
		act{line: "set selector service web a=b", want: []string{"selector updated"}},
		act{line: "get service web -o jsonpath={.spec.selector}", want: []string{`{"a":"b"}`}},
		act{line: "autoscale deployment web --max=3 --cpu=50%", want: []string{"autoscaled"}},
		act{line: "run one --image=one:1 --restart=Never", want: []string{"pod/one created"}},
		act{line: "delete pod one", want: []string{`pod "one" deleted`}},
	)
}

func kubectlDryRun(t *testing.T, k *kubectl) {
	k.play(t,
		act{line: "create -f - --dry-run=server", input: webManifest("web:1", "2", ""), want: []string{"deployment.apps/web created (server dry run)"}},
		act{line: "apply -f - --dry-run=server", input: webManifest("web:1", "2", ""), want: []string{"created (server dry run)"}},
		act{line: "apply --server-side -f - --dry-run=server -o yaml", input: webManifest("web:1", "2", ""), want: []string{"progressDeadlineSeconds: 600", "uid:"}},
		act{line: "get deployments -o name", not: []string{"web"}},
		act{line: "create -f -", input: webManifest("web:1", "2", "")},
		act{line: "create -f - --dry-run=server", input: webManifest("web:1", "2", ""), code: 1, want: []string{"AlreadyExists"}},
		act{line: `patch deployment web --dry-run=server --type=merge -p {"spec":{"replicas":7}}`, want: []string{"patched"}},
		act{line: "scale deployment web --replicas=7 --dry-run=server", want: []string{"scaled"}},
		act{line: "delete deployment web --dry-run=server", want: []string{"deleted"}},
		act{line: "delete deployments --all --dry-run=server", want: []string{"deleted"}},
		act{line: "get deployment web -o jsonpath={.spec.replicas}/{.metadata.generation}", want: []string{"2/1"}},
	)
}

// kubectlCascade deletes owners in all ways.
func kubectlCascade(t *testing.T, k *kubectl) {
	for _, cascade := range []string{"background", "foreground", "orphan"} {
		k.play(t, act{line: "create configmap " + cascade})
		uid, _ := k.try(t, "get configmap "+cascade+" -o jsonpath={.metadata.uid}", "")
		child := fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s-child, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %[1]s, uid: %[2]q, blockOwnerDeletion: true}]}}`, cascade, uid)
		k.play(t,
			act{line: "create -f -", input: child},
			act{line: "delete configmap " + cascade + " --cascade=" + cascade, want: []string{"deleted"}},
			act{line: "get configmap " + cascade, code: 1, want: []string{"NotFound"}})
		switch cascade {
		case "orphan":
			k.play(t, act{line: "get configmap orphan-child -o jsonpath={.metadata.name}{.metadata.ownerReferences}", want: []string{"orphan-child"}, not: []string{"uid"}})
		case "foreground":
			k.play(t, act{line: "get configmap foreground-child", code: 1, want: []string{"NotFound"}})
		default:
			k.play(t, act{line: "wait --for=delete configmap/background-child --timeout=30s"})
		}
	}
	k.play(t,
		act{line: "delete configmap nothing", code: 1, want: []string{"NotFound"}},
		act{line: "delete configmap nothing --ignore-not-found"},
		act{line: "delete configmap orphan-child --force", want: []string{"force deleted"}},
		act{line: "create deployment web --image=web:1"},
		act{line: "delete namespace cascade --timeout=30s", want: []string{`namespace "cascade" deleted`}},
		act{line: "get namespace cascade", code: 1, want: []string{"NotFound"}})
}
