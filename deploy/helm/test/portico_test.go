package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// patience is the timeout of all operations, for busy machines.
const patience = 2 * time.Minute

// site is a running Portico, which replaces the cluster that the chart is installed in.
type site struct {
	dir        string // of its data
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	mapper     meta.RESTMapper
}

// start starts the all-in-one in the vocabulary of stock clients, with the types of
// cert-manager. More flags may follow.
func start(t *testing.T, more ...string) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	dir := t.TempDir()
	var output bytes.Buffer
	args := append([]string{"--data-dir=" + dir, "--vocabulary=k8s", "--bind-address=127.0.0.1", "--secure-port=" + port, "--log-level=warn"}, more...)
	process := exec.Command(program(t, "portico"), args...)
	process.Stdout, process.Stderr = &output, &output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
		if t.Failed() {
			t.Logf("Portico said: %s", output.String())
		}
	})
	s := &site{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	eventually(t, "Portico is ready", func() error { return s.connect(t.Context()) })
	s.addDefinitions(t)
	return s
}

// eventually calls try until it succeeds.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *site) connect(ctx context.Context) (err error) {
	if s.config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig); err != nil {
		return err
	}
	s.config.QPS = -1
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		return err
	}
	if s.dynamic, err = dynamic.NewForConfig(s.config); err != nil {
		return err
	}
	return s.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// addDefinitions creates the types of cert-manager as its own release does, and waits
// until they are served.
func (s *site) addDefinitions(t *testing.T) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"certificates", "issuers"} {
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "deploy/crds/cert-manager.io_"+name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		// Create drops fields that were added after 1.21, while apply rejects them.
		var definition unstructured.Unstructured
		if err := yaml.Unmarshal(content, &definition.Object); err != nil {
			t.Fatal(err)
		}
		definitions := s.dynamic.Resource(resourceOf("apiextensions.k8s.io/v1/customresourcedefinitions"))
		if _, err := definitions.Create(t.Context(), &definition, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the types of cert-manager", func() error {
		if err := s.remap(); err != nil {
			return err
		}
		_, err := s.mapper.KindFor(resourceOf("cert-manager.io/v1/certificates"))
		return err
	})
}

func (s *site) remap() error {
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(s.config))
	s.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return err
}

// apply applies an object by server-side apply, and returns it as it is then.
func (s *site) apply(ctx context.Context, document []byte) (*unstructured.Unstructured, error) {
	content, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	var target dynamic.ResourceInterface = s.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		target = s.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	return target.Patch(ctx, object.GetName(), types.ApplyPatchType, content, metav1.PatchOptions{FieldManager: "test"})
}

// TestPorticoTakesEveryObject applies what was rendered for each values file to a
// Portico, twice: the second time nothing changes.
func TestPorticoTakesEveryObject(t *testing.T) {
	s := start(t)
	for _, file := range valuesFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			// With --dry-run=server, Helm requests the API versions of this cluster.
			text, err := runHelm(t.Context(), "template", release, chart, "--namespace", "apply-"+name, "--values", file, "--dry-run=server", "--kubeconfig", s.kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			s.makeNamespace(t, "apply-"+name)
			documents := split(text)
			if len(documents) < 30 {
				t.Fatalf("only %d objects", len(documents))
			}
			var mu sync.Mutex
			versions := map[int]string{}
			for round := range 2 {
				var group sync.WaitGroup
				for n, document := range documents {
					group.Go(func() {
						object, err := s.apply(t.Context(), document)
						if err != nil {
							t.Errorf("%v in\n%s", err, document)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						if round == 1 && object.GetGeneration() != 0 && strings.Split(versions[n], "/")[0] != fmt.Sprint(object.GetGeneration()) {
							t.Errorf("%s %s: changed when applied again: generation %s, then %d", object.GetKind(), object.GetName(), versions[n], object.GetGeneration())
						}
						if own := managed(object); round == 1 && strings.SplitN(versions[n], "/", 2)[1] != own {
							t.Errorf("%s %s: applied again it was written at %s, before at %s", object.GetKind(), object.GetName(), own, versions[n])
						}
						versions[n] = fmt.Sprintf("%d/%s", object.GetGeneration(), managed(object))
					})
				}
				group.Wait()
			}
			if name == "ha" {
				s.compareStored(t, "apply-ha")
			}
		})
	}
}

// managed returns the time and fields of this test's managedFields entry. Tests compare it
// instead of the resourceVersion, which also changes when controllers write the status.
func managed(o *unstructured.Unstructured) string {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == "test" && entry.Subresource == "" {
			return entry.Time.UTC().Format(time.RFC3339) + string(entry.FieldsV1.Raw)
		}
	}
	return ""
}

func (s *site) makeNamespace(t *testing.T, name string) {
	t.Helper()
	if _, err := s.apply(t.Context(), fmt.Appendf(nil, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name)); err != nil {
		t.Fatal(err)
	}
}

// split returns the documents of a rendered chart.
func split(text string) (documents [][]byte) {
	for document := range strings.SplitSeq(text, "\n---") {
		if len(withoutComments([]byte(document))) > 0 {
			documents = append(documents, []byte(document))
		}
	}
	return documents
}
