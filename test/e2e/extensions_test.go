package e2e

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// extension is a server that others would write, with its service in a namespace.
type extension struct {
	*cluster.Cluster
	k                  *kubectl
	namespace, address string
	serving            peertls.Files
	process            *process
}

// localExtensions lets the front door connect to extensions on this machine.
const localExtensions = "--connect-allow-cidrs=127.0.0.0/8"

// proxyFlags returns the flags by which the front door of a suite of processes proves to
// extensions who it is, and those by which extensions and authn know it.
func proxyFlags(t *testing.T) (door, trust []string) {
	t.Helper()
	client := issueFor(t, "front-proxy-client")
	trust = []string{"--requestheader-client-ca-file=" + client.CA, "--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"}
	return append([]string{"--proxy-client-cert-file=" + client.Cert, "--proxy-client-key-file=" + client.Key, localExtensions}, trust...), trust
}

func issueFor(t *testing.T, names ...string) peertls.Files {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestExtensions uses an extension of the API with stock clients, through the suite in one
// process, with the identity that its home has by default.
func TestExtensions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl and an extension")
	}
	testExtensions(t, startAllInOne(t, vocabulary.K8s(), localExtensions).Cluster)
}

// TestExtensionsOfProcesses does so through a front door that is a process of its own.
func TestExtensionsOfProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl and an extension, builds and starts eleven processes")
	}
	door, trust := proxyFlags(t)
	s := newSuite(t, vocabulary.K8s())
	for _, p := range programs() {
		switch p.name {
		case "frontdoor":
			p.args = door
		case "authn":
			p.args = trust
		}
		s.start(t, p)
	}
	testExtensions(t, s.connect(t, "frontdoor"))
}

func testExtensions(t *testing.T, c *cluster.Cluster) {
	if err := build("../extension", root+"/bin/extension", []string{"GOWORK=off"}, "."); err != nil {
		t.Fatal(err)
	}
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	x := &extension{Cluster: c, namespace: newNamespace(t, c.Client(t)), address: address}
	x.k = newKubectl(t, c).in(t, x.namespace)
	x.serving = issueFor(t, "extension."+x.namespace+".svc")
	x.register(t)
	t.Run("down", x.down)
	x.start(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{{"objects", x.objects}, {"watch", x.watched}, {"documents", x.documents}, {"rights", x.rights}, {"metrics", x.metrics}, {"published trust", x.trust}} {
		t.Run(c.name, c.run)
	}
	x.process.stop(t)
	t.Run("down again", x.down)
	x.start(t)
	t.Run("up again", x.objects)
}

// register makes the service of the extension and its APIServices.
func (x *extension) register(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(x.address)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(x.serving.CA)
	if err != nil {
		t.Fatal(err)
	}
	service := `apiVersion: v1
kind: Service
metadata: {name: extension}
spec: {type: ExternalName, externalName: localhost}
`
	for _, gv := range []string{"extension.example.com/v1", "metrics.k8s.io/v1beta1"} {
		group, version, _ := strings.Cut(gv, "/")
		service += fmt.Sprintf(`---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %[2]s.%[1]s}
spec: {group: %[1]s, version: %[2]s, groupPriorityMinimum: 100, versionPriority: 100, caBundle: %[5]s,
  service: {namespace: %[3]s, name: extension, port: %[4]s}}
`, group, version, x.namespace, port, base64.StdEncoding.EncodeToString(authority))
	}
	x.k.run(t, "apply -f -", service)
}

// start starts the extension, and waits until it is available and clients discover it. Its
// documents are read after it has become available.
func (x *extension) start(t *testing.T) {
	t.Helper()
	host, port, _ := net.SplitHostPort(x.address)
	config := filepath.Join(x.Dir, "kubeconfig")
	x.process = spawn(t, t.TempDir(), filepath.Join(root, "bin", "extension"), "--bind-address="+host, "--secure-port="+port,
		"--tls-cert-file="+x.serving.Cert, "--tls-private-key-file="+x.serving.Key, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config)
	x.await(t, "True Passed")
	eventually(t, "the resources of the extension are discovered", func() bool {
		a := ok(t, x.Cluster, cluster.Request{Path: "/apis", Header: http.Header{"Accept": {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}}})
		return strings.Contains(a.Body, `"widgets"`) && !strings.Contains(a.Body, `"freshness":"Stale"`) // which clients ignore
	})
}

// await waits for the status and reason of the condition.
func (x *extension) await(t *testing.T, want string) {
	t.Helper()
	eventually(t, "the APIService is "+want, func() bool {
		var stored struct {
			Status struct {
				Conditions []struct{ Status, Reason string }
			}
		}
		ok(t, x.Cluster, cluster.Request{Path: "/apis/apiregistration.k8s.io/v1/apiservices/v1.extension.example.com"}).Decode(t, &stored)
		c := stored.Status.Conditions
		return len(c) == 1 && c[0].Status+" "+c[0].Reason == want
	})
}

// down: the group of an extension that does not run answers 503, and no other one does.
func (x *extension) down(t *testing.T) {
	x.await(t, "False FailedDiscoveryCheck")
	if a := x.Ask(t, cluster.Request{Path: "/apis/extension.example.com/v1/widgets"}); a.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	x.k.play(t,
		act{line: "get apiservice v1.extension.example.com", want: []string{x.namespace + "/extension", "False (FailedDiscoveryCheck)"}},
		act{line: "api-resources", want: []string{"deployments"}, not: []string{"widgets"}},
		act{line: "get pods,deployments.apps", want: []string{"No resources found"}},
		act{line: "get widgets.extension.example.com", code: 1},
	)
}

const manifest = `apiVersion: extension.example.com/v1
kind: Widget
metadata: {name: %s}
spec: {size: %d}
`

func (x *extension) objects(t *testing.T) {
	x.k.play(t,
		act{line: "create -f -", input: fmt.Sprintf(manifest, "a", 1), want: []string{"widget.extension.example.com/a created"}},
		act{line: "create -f -", input: fmt.Sprintf(manifest, "a", 1), code: 1, want: []string{"AlreadyExists"}},
		act{line: "apply -f -", input: fmt.Sprintf(manifest, "b", 2), want: []string{"created"}},
		act{line: "apply -f -", input: fmt.Sprintf(manifest, "b", 3), want: []string{"configured"}},
		act{line: "apply --server-side -f -", input: fmt.Sprintf(manifest, "c", 4), code: 1}, // it does not create by patches
		act{line: `patch widget a --type=merge -p {"spec":{"size":7}}`, want: []string{"patched"}},
		act{line: "get wd", want: []string{"NAME", "a", "b"}},
		act{line: "get widgets -o jsonpath={.items[*].spec.size}", want: []string{"7 3"}},
		act{line: "get widget none", code: 1, want: []string{"NotFound"}},
		act{line: "delete widget a b", want: []string{`"a" deleted`, `"b" deleted`}},
		act{line: "get widgets", want: []string{"No resources found"}},
	)
}

func (x *extension) watched(t *testing.T) {
	command := x.k.command(t.Context(), `get widgets -w -o jsonpath={.metadata.name}={.spec.size}{"\n"}`)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	x.k.run(t, "create -f -", fmt.Sprintf(manifest, "w", 1))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for size := int64(1); size <= 3; size++ {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf("w=%d\n", size); line != want {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		x.k.run(t, fmt.Sprintf(`patch widget w --type=merge -p {"spec":{"size":%d}}`, size+1), "")
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	x.k.run(t, "delete widget w", "")
}

func (x *extension) documents(t *testing.T) {
	eventually(t, "the documents are merged", func() bool {
		a := x.Ask(t, cluster.Request{Path: "/openapi/v2"})
		return strings.Contains(string(a.Body), "com.example.extension.v1.WidgetSpec") && strings.Contains(string(a.Body), "io.k8s.api.core.v1.PodSpec")
	})
	x.k.play(t,
		act{line: "explain widgets.spec.size", want: []string{"extension.example.com", "The size of the widget."}},
		act{line: "api-resources --api-group=extension.example.com", want: []string{"widgets", "wd", "true", "Widget"}},
		act{line: "api-versions", want: []string{"extension.example.com/v1", "apps/v1", "metrics.k8s.io/v1beta1"}},
		act{line: "explain pods.spec.nodeName", want: []string{"nodeName"}},
	)
}

// rights: the front door refuses what its rules do not allow, and the extension sees the
// user for whom it asks again.
func (x *extension) rights(t *testing.T) {
	x.k.play(t,
		act{line: "--as=jane get widgets", code: 1, want: []string{"Forbidden", `User "jane" cannot list resource "widgets" in API group "extension.example.com"`}},
		act{line: "create role readers --verb=get,list --resource=widgets.extension.example.com", want: []string{"created"}},
		act{line: "create rolebinding readers --role=readers --user=jane", want: []string{"created"}},
	)
	eventually(t, "the user may read", func() bool {
		a := x.Ask(t, cluster.Request{Path: "/apis/extension.example.com/v1/namespaces/" + x.namespace + "/widgets", Header: http.Header{"Impersonate-User": {"jane"}}})
		return a.Code == http.StatusOK
	})
	x.k.play(t,
		act{line: "--as=jane get widgets", want: []string{"No resources found"}},
		act{line: "--as=jane create -f -", input: fmt.Sprintf(manifest, "j", 1), code: 1, want: []string{"Forbidden"}},
		act{line: "--as=jane get widgets -A", code: 1, want: []string{"Forbidden"}},
	)
	x.withdrawn(t)
}

// withdrawn takes the right from a user who watches objects of the extension: the front door ends
// the watch.
func (x *extension) withdrawn(t *testing.T) {
	x.k.play(t,
		act{line: "create role watchers --verb=watch,list --resource=widgets.extension.example.com", want: []string{"created"}},
		act{line: "create rolebinding watchers --role=watchers --user=walter", want: []string{"created"}},
	)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var response *http.Response
	eventually(t, "the user may watch", func() bool {
		var err error
		response, err = x.Send(ctx, cluster.Request{Path: "/apis/extension.example.com/v1/namespaces/" + x.namespace + "/widgets?watch=true", Header: http.Header{"Impersonate-User": {"walter"}}})
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
		}
		return response.StatusCode == http.StatusOK
	})
	defer response.Body.Close()
	began := time.Now()
	x.k.run(t, "delete rolebinding watchers", "")
	body, err := io.ReadAll(response.Body)
	if ctx.Err() != nil {
		t.Fatal("the watch is open after the right was withdrawn")
	}
	t.Logf("the watch ended after %v: %v %.300s", time.Since(began), err, body)
}

func (x *extension) metrics(t *testing.T) {
	if all := ok(t, x.Cluster, cluster.Request{Path: "/metrics"}).Body; !strings.Contains(all, `aggregator_unavailable_apiservice{name="v1.extension.example.com"} 0`) {
		t.Error("/metrics lacks the availability of the extension")
	}
	ok(t, x.Cluster, post("/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"capacity":{"cpu":"1","memory":"1Gi"},"allocatable":{"cpu":"1","memory":"1Gi"}}}`))
	eventually(t, "the metrics are available", func() bool {
		return x.Ask(t, cluster.Request{Path: "/apis/metrics.k8s.io/v1beta1/nodes"}).Code == http.StatusOK
	})
	x.k.play(t,
		act{line: "top nodes", want: []string{"n", "250m", "25%", "512Mi", "50%"}},
		act{line: "top pods", want: []string{"p", "125m", "64Mi"}},
	)
}

// trust: extensions can read how this API authenticates its clients.
func (x *extension) trust(t *testing.T) {
	x.k.play(t, act{line: "get configmap -n kube-system extension-apiserver-authentication -o yaml",
		want: []string{"requestheader-client-ca-file", `requestheader-username-headers: '["X-Remote-User"]'`, `requestheader-allowed-names: '["front-proxy-client"]'`}})
}
