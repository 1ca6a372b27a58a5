package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const release, namespace = "portico", "suite"

// replicas are the ready pods of each component with the values of the chart.
func replicas() map[string]int {
	return map[string]int{"store": 2, "watch-hub": 2, "authn": 2, "authz": 2, "admission": 2, "frontdoor": 2,
		"csr-signer": 1, "token-cleaner": 1, "lifecycle": 1, "etcd": 3, "nats": 3}
}

// TestCluster installs the previous version of the chart, upgrades to this one with other
// values, rolls back and uninstalls: every pod is scheduled and becomes ready, and no
// service has fewer available pods than it should on the way.
func TestCluster(t *testing.T) {
	s := start(t)
	s.startControllers(t)
	s.startNodes(t)
	s.addVolumes(t, 3)
	helm := func(args ...string) {
		t.Helper()
		if _, err := s.command(t.Context(), program(t, "cluster/helm"), append(args, "--namespace", namespace, "--timeout", patience.String())...); err != nil {
			s.describe(t)
			t.Fatal(err)
		}
	}
	helm("install", release, previousChart(t), "--create-namespace", "--wait")
	s.awaitReady(t, replicas())
	s.checkPlacement(t)
	first := s.images(t)

	watch := s.watchAvailability(t)
	helm("upgrade", release, "../portico", "--wait", "--values", "../test/values/connected.yaml", "--set", "minReadySeconds=5", "--set", "nats.replicas=5", "--set", "image.tag=v2")
	upgraded := replicas()
	upgraded["nats"] = 5
	s.awaitReady(t, upgraded)
	for name, image := range s.images(t) {
		if isSuite := !strings.Contains(name, "-etcd") && !strings.Contains(name, "-nats"); isSuite && (image == first[name] || !strings.HasSuffix(image, ":v2")) {
			t.Errorf("%s was not upgraded: it runs %s", name, image)
		}
	}
	helm("rollback", release, "1", "--wait")
	s.awaitReady(t, replicas())
	for name, image := range s.images(t) {
		if image != first[name] {
			t.Errorf("%s was not rolled back: it runs %s, before %s", name, image, first[name])
		}
	}
	watch.check(t)
	helm("test", release)

	t.Run("streams", s.testStreams)

	helm("uninstall", release)
	eventually(t, "all pods are gone", func() error {
		pods, err := s.pods(t.Context())
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods", len(pods))
		}
		return err
	})
}

// previousChart returns a folder with the chart in its previous version, from the history of
// this repository.
func previousChart(t *testing.T) string {
	t.Helper()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %s: %v (the history of the repository is needed)", args[0], err)
		}
		return strings.TrimSpace(string(out))
	}
	const file = "deploy/helm/portico/Chart.yaml"
	bump := git("log", "-1", "--format=%H", "-G", "^version:", "--", file)
	dir := t.TempDir()
	archive := filepath.Join(dir, "chart.tar")
	git("archive", "--output", archive, bump+"^", "deploy/helm/portico")
	if out, err := exec.Command("tar", "-C", dir, "-xf", archive).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(dir, "deploy/helm/portico")
	before, err := os.ReadFile(filepath.Join(path, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if version := func(content []byte) string {
		_, rest, _ := strings.Cut(string(content), "\nversion: ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}; version(before) == version(now) || version(before) == "" {
		t.Fatalf("the previous chart has the version %q, this one %q", version(before), version(now))
	}
	return path
}

// pods returns the pods of the suite that have not succeeded.
func (s *site) pods(ctx context.Context) (running []corev1.Pod, err error) {
	list, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if pod.Status.Phase != corev1.PodSucceeded {
			running = append(running, pod)
		}
	}
	return running, nil
}

// awaitReady waits until each component has exactly its pods, and all are ready.
func (s *site) awaitReady(t *testing.T, want map[string]int) {
	t.Helper()
	eventually(t, "all pods are ready", func() error {
		pods, err := s.pods(t.Context())
		if err != nil {
			return err
		}
		ready := map[string]int{}
		var problems []error
		for _, pod := range pods {
			component := pod.Labels["app.kubernetes.io/component"]
			if !isReady(pod) || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
				problems = append(problems, fmt.Errorf("%s: phase %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName))
				continue
			}
			ready[component]++
		}
		for component, number := range want {
			if ready[component] != number {
				problems = append(problems, fmt.Errorf("%s: %d pods are ready, want %d", component, ready[component], number))
			}
		}
		return errors.Join(problems...)
	})
}

func isReady(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// checkPlacement checks what the scheduler and the controllers have done: replicas are on
// different nodes, each Service has the endpoints of its pods, each claim a volume, and each
// disruption budget allows a disruption.
func (s *site) checkPlacement(t *testing.T) {
	t.Helper()
	pods, err := s.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	placed := map[string]map[string]bool{}
	for _, pod := range pods {
		component := pod.Labels["app.kubernetes.io/component"]
		if placed[component] == nil {
			placed[component] = map[string]bool{}
		}
		placed[component][pod.Spec.NodeName] = true
	}
	for component, number := range replicas() {
		if len(placed[component]) != number {
			t.Errorf("%s: %d pods are on %d nodes", component, number, len(placed[component]))
		}
	}
	eventually(t, "endpoints, volumes and disruption budgets", func() error {
		var problems []error
		for component, number := range replicas() {
			if strings.HasPrefix(component, "csr") || component == "token-cleaner" || component == "lifecycle" {
				continue // workers serve nothing
			}
			endpoints, err := s.client.CoreV1().Endpoints(namespace).Get(t.Context(), release+"-"+component, metav1.GetOptions{}) //nolint:staticcheck // what clients of 1.21 read
			if err != nil {
				return err
			}
			if len(endpoints.Subsets) != 1 || len(endpoints.Subsets[0].Addresses) != number {
				problems = append(problems, fmt.Errorf("the Service of %s has the endpoints %+v", component, endpoints.Subsets))
			}
		}
		claims, err := s.client.CoreV1().PersistentVolumeClaims(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, claim := range claims.Items {
			if claim.Status.Phase != corev1.ClaimBound {
				problems = append(problems, fmt.Errorf("%s is %s", claim.Name, claim.Status.Phase))
			}
		}
		budgets, err := s.client.PolicyV1().PodDisruptionBudgets(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, budget := range budgets.Items {
			if budget.Status.DisruptionsAllowed != 1 {
				problems = append(problems, fmt.Errorf("%s allows %d disruptions", budget.Name, budget.Status.DisruptionsAllowed))
			}
		}
		if len(claims.Items) != 3 || len(budgets.Items) != 11 {
			problems = append(problems, fmt.Errorf("%d claims, %d budgets", len(claims.Items), len(budgets.Items)))
		}
		return errors.Join(problems...)
	})
}

// images returns the images that pods run, by the controller of the pod.
func (s *site) images(t *testing.T) map[string]string {
	t.Helper()
	pods, err := s.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, pod := range pods {
		images[release+"-"+pod.Labels["app.kubernetes.io/component"]] = pod.Spec.Containers[0].Image
	}
	return images
}

// availability follows the Deployments of the suite.
type availability struct {
	mu     sync.Mutex
	events int
	lacks  []string
}

// watchAvailability records each state of a Deployment in which fewer pods are available
// than it wants.
func (s *site) watchAvailability(t *testing.T) *availability {
	t.Helper()
	watch, err := s.client.AppsV1().Deployments(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := &availability{}
	go func() {
		for event := range watch.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			a.mu.Lock()
			a.events++
			if d.Spec.Replicas != nil && d.Status.AvailableReplicas < *d.Spec.Replicas {
				a.lacks = append(a.lacks, fmt.Sprintf("%s: %d of %d", d.Name, d.Status.AvailableReplicas, *d.Spec.Replicas))
			}
			a.mu.Unlock()
		}
	}()
	return a
}

func (a *availability) check(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.lacks) > 0 || a.events < 30 {
		t.Errorf("of %d states of the Deployments, too few pods were available in %q", a.events, a.lacks)
	}
}

// describe logs what keeps pods from being ready.
func (s *site) describe(t *testing.T) {
	for _, what := range [][]string{{"get", "pods,jobs,pvc", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"}} {
		out, _ := s.command(t.Context(), s.kubectlPath, append(what, "-n", namespace)...)
		t.Log(out[max(0, len(out)-6000):])
	}
}
