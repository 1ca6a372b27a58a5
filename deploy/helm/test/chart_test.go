// Package test checks the Helm chart without a kubelet: Helm renders it, every object is
// decoded strictly and compared with the programs' flags, and the chart is installed,
// upgraded and rolled back in a Portico.
package test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	root  = "../../.."
	chart = "../portico"
	// release and namespace are those of all rendered charts.
	release, namespace = "portico", "suite"
)

// helm returns the path of the Helm binary: that of this module, or the environment
// variable HELM.
var helm = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("HELM"); path != "" {
		return path, nil
	}
	out, err := exec.Command("go", "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(out)), err
})

// bin returns the folder of the suite's programs, which `make build` creates.
var bin = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "portico")); err != nil {
		return "", fmt.Errorf("%w (make build makes it)", err)
	}
	return dir, nil
})

var services = []string{"store", "watch-hub", "authn", "authz", "admission", "frontdoor", "csr-signer", "token-cleaner", "lifecycle"}

func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := bin()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// runHelm returns the output of a Helm command.
func runHelm(ctx context.Context, args ...string) (string, error) {
	path, err := helm()
	if err != nil {
		return "", fmt.Errorf("building helm: %w", err)
	}
	command := exec.CommandContext(ctx, path, args...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w: %s%s", args[0], err, errs.String(), out.String())
	}
	return out.String(), nil
}

// valuesFiles returns all values that the chart is rendered with.
func valuesFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("values/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("values: %q, %v", files, err)
	}
	return files
}

// forEach runs a test on each rendered chart.
func forEach(t *testing.T, check func(*testing.T, rendered)) {
	for _, file := range valuesFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			check(t, render(t, file))
		})
	}
}

// rendered is a chart, decoded strictly: an unknown or repeated field is an error.
type rendered []client.Object

// template returns the rendered chart of a values file, which it caches.
var template = func() func(string) (string, error) {
	var mu sync.Mutex
	cache := map[string]func() (string, error){}
	return func(file string) (string, error) {
		mu.Lock()
		if cache[file] == nil {
			cache[file] = sync.OnceValues(func() (string, error) {
				return runHelm(context.Background(), "template", release, chart, "--namespace", namespace, "--values", file)
			})
		}
		once := cache[file]
		mu.Unlock()
		return once()
	}
}()

func render(t *testing.T, file string) rendered {
	t.Helper()
	text, err := template(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) < 30 {
		t.Fatalf("only %d objects", len(objects))
	}
	return objects
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), certmanager.AddToScheme(s)); err != nil {
		panic(err)
	}
	return s
}

func decode(text string) (objects rendered, err error) {
	decoder := serializer.NewCodecFactory(scheme(), serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(withoutComments(document)) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		objects = append(objects, object.(client.Object))
	}
}

// withoutComments returns the lines of a document that are neither comments nor empty.
func withoutComments(document []byte) (lines []string) {
	for line := range strings.Lines(string(document)) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed != "---" && !strings.HasPrefix(trimmed, "#") {
			lines = append(lines, trimmed)
		}
	}
	return lines
}

// all returns the objects of one type.
func all[T client.Object](objects rendered) (found []T) {
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// component returns the component of an object or pod.
func component(labels map[string]string) string { return labels["app.kubernetes.io/component"] }

func TestLint(t *testing.T) {
	for _, file := range valuesFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if out, err := runHelm(t.Context(), "lint", chart, "--strict", "--values", file); err != nil {
				t.Error(out, err)
			}
		})
	}
}

// TestObjectsAreNamedOnce: no two objects have the same name, and no name is too long for
// a label.
func TestObjectsAreNamedOnce(t *testing.T) {
	forEach(t, func(t *testing.T, objects rendered) {
		var seen []string
		for _, o := range objects {
			kind := o.GetObjectKind().GroupVersionKind().Kind
			name := kind + " " + o.GetName()
			if slices.Contains(seen, name) {
				t.Errorf("%s: twice", name)
			}
			seen = append(seen, name)
			if o.GetNamespace() != namespace {
				t.Errorf("%s: in namespace %q", name, o.GetNamespace())
			}
			if component(o.GetLabels()) == "" || o.GetLabels()["app.kubernetes.io/instance"] != release {
				t.Errorf("%s: labels %v", name, o.GetLabels())
			}
		}
	})
}

// TestServicesInSteps: an image tag and an emulated release of one service replace those of all,
// and change no other service.
func TestServicesInSteps(t *testing.T) {
	out, err := runHelm(t.Context(), "template", release, chart, "--namespace", namespace, "--set", "image.tag=v1,emulatedVersion=1.21,store.image.tag=v2,frontdoor.emulatedVersion=1.36")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(out)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, d := range all[*appsv1.Deployment](objects) {
		checked++
		name, tag, emulated := component(d.Labels), "v1", "1.21"
		if name == "store" {
			tag = "v2"
		}
		if name == "frontdoor" {
			emulated = "1.36"
		}
		container := d.Spec.Template.Spec.Containers[0]
		if want := "portico-" + name + ":" + tag; container.Image != want || d.Labels["app.kubernetes.io/version"] != tag {
			t.Errorf("%s runs %s with the version %s, want %s", name, container.Image, d.Labels["app.kubernetes.io/version"], want)
		}
		if !slices.Contains(container.Args, "--emulated-version="+emulated) {
			t.Errorf("%s: %q, want the release %s", name, container.Args, emulated)
		}
	}
	if checked != len(services) {
		t.Errorf("%d services", checked)
	}
}

// TestValuesAtTheLimit: what is only just possible is accepted.
func TestValuesAtTheLimit(t *testing.T) {
	for _, set := range []string{
		"authz.autoscaling.enabled=true,authz.autoscaling.minReplicas=6",
		"authz.autoscaling.minReplicas=7", // it is not enabled
		"store.disruptionBudget.maxUnavailable=0,store.disruptionBudget.enabled=false",
		"frontdoor.shutdownDelay=49s999ms",
		"monitoring.podMonitor.enabled=true,networkPolicy.enabled=false",
		"monitoring.podMonitor.enabled=true,networkPolicy.metrics[0].podSelector.matchLabels.a=b",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			if _, err := runHelm(t.Context(), "template", release, chart, "--set", set); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSingleNATSServer: a server without others has no cluster.
func TestSingleNATSServer(t *testing.T) {
	for replicas, routes := range map[string]int{"1": 0, "2": 2} {
		out, err := runHelm(t.Context(), "template", release, chart, "--values", "values/cert-manager.yaml", "--set", "nats.replicas="+replicas, "--show-only", "templates/nats.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "verify_and_map: true") || strings.Contains(out, "\n    cluster {\n") != (routes > 0) || strings.Count(out, `"tls://portico-nats-`) != routes {
			t.Errorf("%s servers:\n%s", replicas, out)
		}
	}
}

// TestWrongValues: the schema and the guards reject invalid values.
func TestWrongValues(t *testing.T) {
	for set, want := range map[string]string{
		"storee.replicas=2":                                              "additional properties 'storee' not allowed",
		"store.replica=2":                                                "additional properties 'replica' not allowed",
		"store.replicas=-1":                                              "/store/replicas",
		"etcd.replicas=2":                                                "/etcd/replicas",
		"vocabulary=klingon":                                             "/vocabulary",
		"authn.emulatedVersion=1.20":                                     "/authn/emulatedVersion",
		"authn.image.name=a":                                             "/authn/image",
		"pki.mode=none":                                                  "/pki/mode",
		"pki.server=http://api":                                          "/pki/server",
		"pki.validity=1y":                                                "/pki/validity",
		"frontdoor.extraArgs={rm}":                                       "/frontdoor/extraArgs/0",
		"frontdoor.service.type=ExternalName":                            "/frontdoor/service/type",
		"store.resources.limits.memory=lots":                             "/store/resources/limits/memory",
		"etcd.external.endpoints={http://e}":                             "/etcd/external/endpoints/0",
		"nats.external.urls={nats://n}":                                  "/nats/external/urls/0",
		"etcd.overrides./events={http://e}":                              "/etcd/overrides/~1events/0",
		"etcd.overrides.events={https://e}":                              "invalid propertyName 'events'",
		"etcd.bundled=false":                                             "etcd.external.endpoints",
		"tracing.endpoint=collector:4317":                                "/tracing/endpoint",
		"tracing.endpoint=https://collector":                             "/tracing/endpoint",
		"tracing.sampling=2":                                             "/tracing/sampling",
		"nodes.addressTypes={Internal}":                                  "/nodes/addressTypes/0",
		"nodes.denyCIDRs={10.0.0.1}":                                     "/nodes/denyCIDRs/0",
		"nodes.port=0":                                                   "/nodes/port",
		"admissionConfiguration.plugins[0].name=a":                       "/admissionConfiguration/plugins/0",
		"monitoring.podMonitor.interval=often":                           "/monitoring/podMonitor/interval",
		"nats.bundled=false":                                             "nats.external.urls",
		"scheduling.spread[0].topologyKey=x":                             "/scheduling/spread/0",
		"authz.disruptionBudget.maxUnavailable=most":                     "/authz/disruptionBudget/maxUnavailable",
		"networkPolicy.dnsPorts=null":                                    "--reset-then-reuse-values",
		"authz.autoscaling.enabled=true,authz.autoscaling.minReplicas=7": "authz.autoscaling: minReplicas 7 is greater than maxReplicas 6",
		"store.disruptionBudget.maxUnavailable=0":                        "store.disruptionBudget.maxUnavailable: 0 refuses every eviction",
		"watchHub.disruptionBudget.maxUnavailable=0%":                    "watchHub.disruptionBudget.maxUnavailable: 0 refuses every eviction",
		"frontdoor.shutdownDelay=50s":                                    "frontdoor.terminationGracePeriodSeconds: 60 s are too few for shutdownDelay 50s",
		"frontdoor.shutdownDelay=1m500ms":                                "frontdoor.terminationGracePeriodSeconds",
		"frontdoor.terminationGracePeriodSeconds=20":                     "frontdoor.terminationGracePeriodSeconds",
		"monitoring.podMonitor.enabled=true":                             "networkPolicy.metrics",
		"minReadySeconds=null":                                           "--reset-then-reuse-values",
		"networkPolicy.apiServer=null":                                   "--reset-then-reuse-values",
		"backup=null":                                                    "--reset-then-reuse-values",
		"restore=null":                                                   "--reset-then-reuse-values",
		"backup.keep=-1":                                                 "/backup/keep",
		"backup.storage.accessModes={ReadOnlyMany}":                      "/backup/storage/accessModes/0",
		"restore.backup=../a":                                            "/restore/backup",
		"restore.backup=a,etcd.stopped=true":                             "restore.backup: stop etcd in an upgrade of its own",
		"restore.backup=a,etcd.bundled=false,etcd.external.endpoints={https://e}": "restores the bundled etcd only",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			_, err := runHelm(t.Context(), "template", release, chart, "--set", set)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
