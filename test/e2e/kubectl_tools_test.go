package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

func kubectlDiff(t *testing.T, k *kubectl) {
	if _, err := exec.LookPath("diff"); err != nil {
		t.Skip("kubectl diff needs diff")
	}
	k.play(t,
		act{line: "diff -f -", input: webManifest("web:1", "2", ""), code: 1, want: []string{"+kind: Deployment"}},
		act{line: "get deployments -o name", not: []string{"web"}},
		act{line: "apply -f -", input: webManifest("web:1", "2", "")},
		act{line: "diff -f -", input: webManifest("web:1", "2", ""), not: []string{"web"}},
		act{line: "diff -f -", input: webManifest("web:2", "2", ""), code: 1, want: []string{"image: web:1", "image: web:2"}, not: []string{"annotations: {}"}},
		act{line: "diff -f -", input: webManifest("web:2", "-2", ""), code: 2, want: []string{"spec.replicas"}},
		act{line: "get deployment web " + image, want: []string{"web:1"}},
		act{line: "apply --server-side -f -", input: webManifest("web:1", "2", "")},
		act{line: "diff --server-side -f -", input: webManifest("web:1", "2", ""), not: []string{"web"}},
		act{line: "diff --server-side -f -", input: webManifest("web:2", "2", ""), code: 1, want: []string{"image: web:2"}},
	)
}

func kubectlEdit(t *testing.T, k *kubectl) {
	editor := func(command string) *kubectl { return k.with("KUBE_EDITOR=" + command) }
	k.play(t, act{line: "create -f -", input: webManifest("web:1", "2", "")})
	editor(`sed -i s/replicas:.*/replicas:\ 4/`).play(t, act{line: "edit deployment web", want: []string{"deployment.apps/web edited"}})
	editor("true").play(t, act{line: "edit deployment web", want: []string{"no changes made"}})
	editor(`sed -i s/replicas:.*/replicas:\ -4/`).play(t, act{line: "edit deployment web", code: 1, want: []string{"is invalid"}})
	k.play(t,
		act{line: "get deployment web -o jsonpath={.spec.replicas}", want: []string{"4"}},
		act{line: `patch deployment web --subresource=status --type=merge -p {"status":{"replicas":4,"readyReplicas":1}}`})
	editor(`sed -i s/readyReplicas:.*/readyReplicas:\ 3/`).play(t, act{line: "edit deployment web --subresource=status", want: []string{"edited"}})
	k.play(t, act{line: "get deployment web", want: []string{"3/4"}})
}

func kubectlWait(t *testing.T, k *kubectl) {
	met := []string{"deployment.apps/web condition met"}
	k.play(t,
		act{line: "create -f -", input: webManifest("web:1", "2", "")},
		act{line: "wait --for=condition=Available deployment/web --timeout=1s", code: 1, want: []string{"timed out"}},
		act{line: "wait --for=jsonpath={.spec.replicas}=2 deployment/web --timeout=30s", want: met})
	const line = "wait --for=condition=Available deployment/web --timeout=30s"
	available := k.command(t.Context(), line)
	if err := available.Start(); err != nil {
		t.Fatal(err)
	}
	k.play(t, act{line: `patch deployment web --subresource=status --type=merge -p {"status":{"conditions":[{"type":"Available","status":"True"}]}}`})
	if err := available.Wait(); err != nil {
		t.Errorf("kubectl %s: %v", line, err)
	}
	gone := k.command(t.Context(), "wait --for=delete deployment/web --timeout=30s")
	if err := gone.Start(); err != nil {
		t.Fatal(err)
	}
	k.play(t, act{line: "delete deployment web --wait=false", want: []string{"deleted"}})
	if err := gone.Wait(); err != nil {
		t.Errorf("kubectl wait --for=delete: %v", err)
	}
}

func kubectlAuth(t *testing.T, k *kubectl) {
	k.play(t,
		act{line: "auth whoami", want: []string{"Username", "admin", "system:masters", "system:authenticated"}},
		act{line: "auth whoami --as=nobody --as-group=staff -o yaml", want: []string{"kind: SelfSubjectReview", "username: nobody", "- staff"}, not: []string{"system:masters"}},
		act{line: "auth can-i create pods", want: []string{"yes"}},
		act{line: "auth can-i create pods --as=nobody", code: 1, want: []string{"no"}},
		act{line: "get pods --as=nobody", code: 1, want: []string{"Forbidden", `"nobody" cannot list resource "pods"`}},
		act{line: "create role reader --verb=get,list --resource=pods", want: []string{"created"}},
		act{line: "create rolebinding reader --role=reader --user=nobody", want: []string{"created"}},
		act{line: "wait --for=create rolebinding/reader --timeout=30s"},
		act{line: "auth can-i --list --as=nobody", want: []string{"Resources", "selfsubjectaccessreviews"}},
		act{line: "auth reconcile -f -", input: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader","namespace":"auth"},"rules":[{"apiGroups":[""],"resources":["events"],"verbs":["get"]}]}`,
			want: []string{"reader reconciled"}},
		act{line: "auth reconcile --remove-extra-permissions --dry-run=client -f -", input: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader","namespace":"auth"},"rules":[]}`,
			want: []string{"reader reconciled", "extra rules removed"}},
		act{line: "auth can-i --list --as=nobody", want: []string{"events", "pods"}})
	eventually(t, "the role is known", func() bool {
		_, code := k.try(t, "auth can-i list pods --as=nobody", "")
		return code == 0
	})
	k.play(t, act{line: "get pods --as=nobody", want: []string{"No resources found"}}, act{line: "create serviceaccount robot"})
	token, code := k.try(t, "create token robot --duration=20m", "")
	if parts := strings.Split(token, "."); code != 0 || len(parts) != 3 {
		t.Fatalf("kubectl create token: exit code %d\n%s", code, token)
	}
	k.play(t,
		act{line: "create secret generic binding", want: []string{"created"}},
		act{line: "create token robot --bound-object-kind=Secret --bound-object-name=none", code: 1, want: []string{`secrets "none" not found`}},
		act{line: "create token robot --bound-object-kind=Node --bound-object-name=none", code: 1, want: []string{`nodes "none" not found`}})
	kubectlBoundToken(t, k)
	// The administrator's certificate would take precedence over the token.
	robot := "--user=nobody --token=" + strings.TrimSpace(token)
	k.play(t,
		act{line: "get pods " + robot, code: 1, want: []string{"Forbidden", `"system:serviceaccount:auth:robot"`}},
		act{line: "create rolebinding robot --role=reader --serviceaccount=auth:robot", want: []string{"created"}})
	eventually(t, "the robot may read", func() bool {
		_, code := k.try(t, "get pods "+robot, "")
		return code == 0
	})
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.replicas}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: A widget of the workshop.
        properties:
          spec:
            type: object
            required: [colour]
            properties:
              replicas: {type: integer, default: 1, minimum: 0, description: How many widgets.}
              colour: {type: string, enum: [red, blue], description: What it is painted in.}
          status: {type: object, properties: {replicas: {type: integer}, phase: {type: string}}}
`

// kubectlBoundToken uses a token until the Secret that it is bound to is deleted.
func kubectlBoundToken(t *testing.T, k *kubectl) {
	token, code := k.try(t, "create token robot --bound-object-kind=Secret --bound-object-name=binding", "")
	if code != 0 {
		t.Fatal(token)
	}
	whoami := "auth whoami --user=nobody --token=" + strings.TrimSpace(token)
	k.play(t,
		act{line: "config set-credentials nobody"},
		act{line: whoami, want: []string{"system:serviceaccount:auth:robot", "system:serviceaccounts:auth"}},
		act{line: "create token robot --bound-object-kind=Secret --bound-object-name=binding --bound-object-uid=another", code: 1, want: []string{"UID"}},
		act{line: "delete secret binding"})
	eventually(t, "the token is refused", func() bool {
		out, code := k.try(t, whoami, "")
		return code == 1 && strings.Contains(out, "Unauthorized")
	})
}

func widget(spec string) string {
	return "{apiVersion: example.com/v1, kind: Widget, metadata: {name: one}, spec: {" + spec + "}}"
}

// kubectlCustom defines a type and works with it as with any other.
func kubectlCustom(t *testing.T, k *kubectl) {
	k.play(t,
		act{line: "apply -f -", input: widgets, want: []string{"widgets.example.com created"}},
		act{line: "wait --for=condition=Established crd/widgets.example.com --timeout=30s", want: []string{"condition met"}},
		act{line: "apply -f -", input: widgets, want: []string{"unchanged"}},
		act{line: "api-resources --api-group=example.com", want: []string{"widgets", "wd", "example.com/v1", "Widget"}})
	eventually(t, "the type is explained", func() bool {
		out, code := k.try(t, "explain widget.spec", "")
		return code == 0 && strings.Contains(out, "colour\t<string> -required-") && strings.Contains(out, "How many widgets.")
	})
	k.play(t,
		act{line: "apply -f -", input: widget("colour: red"), want: []string{"widget.example.com/one created"}},
		act{line: "apply -f -", input: widget("colour: red"), want: []string{"widget.example.com/one unchanged"}},
		act{line: "apply -f -", input: widget("colour: blue"), want: []string{"widget.example.com/one configured"}},
		act{line: "apply -f -", input: widget("colour: pink"), code: 1, want: []string{`The Widget "one" is invalid`, "spec.colour", "Unsupported value"}},
		act{line: "apply -f -", input: widget("color: red, colour: red"), code: 1, want: []string{"strict decoding error", `unknown field "spec.color"`}},
		act{line: "get widgets", want: []string{"NAME", "SIZE"}, not: []string{"COLOUR"}},
		act{line: "get wd -o wide", want: []string{"COLOUR", "blue"}},
		act{line: "get all", want: []string{"widget.example.com/one"}},
		act{line: "get wd one -o custom-columns=N:.metadata.name,C:.spec.colour", want: []string{"one", "blue"}},
		act{line: "scale widget one --replicas=4", want: []string{"widget.example.com/one scaled"}},
		act{line: "apply --server-side --force-conflicts -f -", input: widget("colour: red, replicas: 5"), want: []string{"serverside-applied"}},
		act{line: `patch widget one --type=merge -p {"spec":{"replicas":6},"status":{"phase":"Painted"}}`, want: []string{"patched"}},
		act{line: `patch widget one --subresource=status --type=merge -p {"spec":{"replicas":7},"status":{"phase":"Dry"}}`, want: []string{"patched"}},
		act{line: "get widget one -o jsonpath={.spec.replicas}{.status.phase}", want: []string{"6Dry"}},
		act{line: `patch widget one -p {"spec":{"replicas":7}}`, code: 1, want: []string{"strategic-merge-patch+json is not supported"}},
		act{line: "delete crd widgets.example.com --timeout=30s", want: []string{"deleted"}},
		act{line: "get widgets", code: 1, want: []string{"the server"}})
}
