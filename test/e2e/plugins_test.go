package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestPluginsInOneProcess and TestPluginsInProcesses run the suite with a configuration
// file of admission and with plugins that are off by default.
func TestPluginsInOneProcess(t *testing.T) {
	t.Parallel()
	v := vocabulary.K8s()
	plugins(t, startAllInOne(t, v, pluginFlags(t, v)...).Cluster)
}

func TestPluginsInProcesses(t *testing.T) {
	t.Parallel()
	v := vocabulary.Platform()
	s := newSuite(t, v)
	for _, p := range programs() {
		if p.name == "admission" {
			p.args = append(p.args[:len(p.args):len(p.args)], pluginFlags(t, v)...)
		}
		s.start(t, p)
	}
	plugins(t, s.connect(t, "frontdoor"))
}

// pluginFlags turns plugins on.
func pluginFlags(t *testing.T, v vocabulary.Vocabulary) []string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"admission.yaml": "apiVersion: " + v.Group("apiserver.config.") + "/v1\nkind: AdmissionConfiguration\nplugins:\n" +
			"- {name: EventRateLimit, path: events.yaml}\n" +
			"- {name: PodNodeSelector, configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: zone=a}}}\n" +
			"- {name: ResourceQuota, configuration: {apiVersion: " + v.Group("apiserver.config.") + "/v1, kind: ResourceQuotaConfiguration, limitedResources: [{resource: replicationcontrollers, matchContains: [replicationcontrollers]}]}}\n",
		"events.yaml": "apiVersion: " + v.Group("eventratelimit.admission.") + "/v1alpha1\nkind: Configuration\nlimits: [{type: Namespace, qps: 1, burst: 2}]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--admission-control-config-file=" + filepath.Join(folder, "admission.yaml"),
		"--enable-admission-plugins=EventRateLimit,NamespaceAutoProvision,NodeRestriction,PodNodeSelector,SecurityContextDeny,DenyServiceExternalIPs"}
}

func plugins(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	account := s.in("v1", "serviceaccounts/default")
	eventually(t, "the account of pods is there", func() bool { return c.Ask(t, cluster.Request{Path: account}).Code == http.StatusOK })
	pod := func(name, spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"a","image":"a"}]` + spec + `}}`
	}
	if made := s.do(s.created, "POST "+s.in("v1", "pods"), pod("a", "")); !strings.Contains(made.Body, `"nodeSelector":{"zone":"a"}`) {
		t.Errorf("the pod has no selector: %s", made.Body)
	}
	s.names(s.do(http.StatusForbidden, "POST "+s.in("v1", "pods"), pod("b", `,"nodeSelector":{"zone":"b"}`)), "pod node label selector conflicts")
	s.names(s.do(http.StatusForbidden, "POST "+s.in("v1", "pods"), pod("b", `,"securityContext":{"runAsUser":0}`)), "pod.Spec.SecurityContext.RunAsUser is forbidden")
	s.names(s.do(http.StatusForbidden, "POST "+s.in("v1", "services"),
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80}],"externalIPs":["10.1.1.1"]}}`), "Use of external IPs is denied")
	s.names(s.do(http.StatusForbidden, "POST "+s.in("v1", "replicationcontrollers"),
		`{"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"a"},"spec":{"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`),
		"insufficient quota to consume: count/replicationcontrollers,replicationcontrollers")
	limitedEvents(s)
	providedNamespace(s)
	restrictedNode(s)
}

// limitedEvents writes events faster than they are let through.
func limitedEvents(s scene) {
	var codes []int
	for i := range 6 {
		answer := s.c.Ask(s.t, post(s.in("v1", "events"), fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e%d"},"involvedObject":{"kind":"Pod","namespace":%q,"name":"a"}}`, i, s.namespace)))
		if codes = append(codes, answer.Code); answer.Code == http.StatusTooManyRequests {
			if want := "Too many requests: limit reached on type Namespace for key " + s.namespace; !strings.Contains(answer.Body, want) {
				s.t.Errorf("%s, want %q", answer.Body, want)
			}
			return
		}
	}
	s.t.Errorf("no event was refused: %v", codes)
}

// providedNamespace creates an object in a namespace that does not exist.
func providedNamespace(s scene) {
	name := s.namespace + "-provided"
	path := "/api/v1/namespaces/" + name
	s.do(http.StatusNotFound, "POST "+path+"/configmaps?dryRun=All", plain(`"name":"a"`, ""))
	s.do(s.created, "POST "+path+"/configmaps", plain(`"name":"a"`, ""))
	made := s.do(http.StatusOK, "GET "+path, "")
	if made.GetUID() == "" || made.at("status", "phase") != "Active" || made.GetLabels()[s.c.Vocabulary.Qualified("", "metadata.name")] != name || made.at("metadata", "creationTimestamp") == "" {
		s.t.Errorf("the namespace is %s", made.Body)
	}
	s.do(http.StatusOK, "GET /api/v1/namespaces?fieldSelector=status.phase%3DActive&labelSelector="+s.c.Vocabulary.Qualified("", "metadata.name")+"%3D"+name, "")
	s.do(http.StatusOK, "DELETE "+path, "") // it is held, and emptied, like any other
	eventually(s.t, "the namespace is gone", func() bool { return s.c.Ask(s.t, cluster.Request{Path: path}).Code == http.StatusNotFound })
}

// restrictedNode lets a node do everything, and admission keeps it to itself.
func restrictedNode(s scene) {
	user := "system:node:" + s.namespace
	rbac := s.c.Vocabulary.Group("rbac.authorization.")
	s.do(s.created, "POST /apis/"+rbac+"/v1/clusterrolebindings", `{"apiVersion":"`+rbac+`/v1","kind":"ClusterRoleBinding","metadata":{"name":"`+user+
		`"},"roleRef":{"apiGroup":"`+rbac+`","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"`+rbac+`","kind":"User","name":"`+user+`"}]}`)
	as := http.Header{"Impersonate-User": {user}, "Impersonate-Group": {"system:nodes"}}
	register := func(name string) cluster.Answer {
		r := post("/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+name+`"}}`)
		r.Header = as
		return s.c.Ask(s.t, r)
	}
	eventually(s.t, "the node may register", func() bool { return register(s.namespace).Code < 300 })
	if got := register("another"); got.Code != http.StatusForbidden || !strings.Contains(got.Body, "is not allowed to modify node") {
		s.t.Errorf("another node: %d %s", got.Code, got.Body)
	}
	s.names(s.send(http.StatusForbidden, cluster.Request{Method: http.MethodDelete, Path: s.in("v1", "pods/a"), Header: as}),
		"can only delete pods with spec.nodeName set to itself")
	slices := "/apis/" + s.c.Vocabulary.Group("resource.") + "/v1/resourceslices"
	if s.c.Ask(s.t, cluster.Request{Path: slices}).Code == http.StatusNotFound {
		return // a release without devices
	}
	s.do(s.created, "POST "+slices, `{"apiVersion":"`+s.c.Vocabulary.Group("resource.")+`/v1","kind":"ResourceSlice","metadata":{"name":"another"},"spec":{"driver":"d.example.com",`+
		`"pool":{"name":"another","generation":1,"resourceSliceCount":1},"nodeName":"another","devices":[]}}`)
	s.names(s.send(http.StatusForbidden, cluster.Request{Method: http.MethodDelete, Path: slices, Header: as}), "can only delete ResourceSlice with the same NodeName as the requesting node")
}
