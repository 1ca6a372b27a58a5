package controllers

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

const namespace = "work"

var load = flag.Duration("load", 0, "how long Deployments are rolled and jobs are run after all workloads have ended")

// TestControllers runs one workload of each kind to its end.
func TestControllers(t *testing.T) {
	s := start(t)
	s.startControllers(t)
	s.startNodes(t)
	metrics := s.startMetrics(t)
	s.kubectl(t, "apply", "--server-side", "-f", "testdata/workloads.yaml")
	for _, w := range []struct {
		name string
		done func(context.Context, kubernetes.Interface) error
	}{
		{"deployment", deployed}, {"budget", budgeted}, {"jobs", jobsDone}, {"stateful set", stateful}, {"daemon set", daemons},
		{"autoscaler", autoscaled}, {"claim", claimed}, {"gate", gated}, {"policy", typeChecked}, {"cron job", scheduled},
	} {
		if !t.Run(w.name, func(t *testing.T) { eventually(t, w.name, func() error { return w.done(t.Context(), s.client) }) }) {
			return
		}
	}
	t.Run("metrics", s.measured)
	t.Run("replaced", s.replaced)
	t.Run("load", s.loaded)
	for _, c := range s.components {
		own, others := c.failures()
		if len(own) > 0 && s.authority == nil {
			t.Errorf("%s has logged %d errors:\n%s", c.name, len(own), strings.Join(own[:min(len(own), 30)], "\n"))
		}
		t.Logf("errors of %s by class:\n%s\nexpected:\n%s", c.name, strings.Join(classes(own), "\n"), strings.Join(classes(others), "\n"))
	}
	t.Run("rights to metrics", func(t *testing.T) { s.metricsRights(t, metrics) }) // metrics-server logs an error for an invalid token
	t.Run("deleted", s.deleted)                                                    // in a namespace that is deleted, controllers log errors beside the original too
}

// kubectl runs kubectl as the administrator.
func (s *site) kubectl(t *testing.T, args ...string) {
	t.Helper()
	if _, err := s.try(t, args...); err != nil {
		t.Fatal(err)
	}
}

// try runs kubectl as the administrator, and returns what it prints.
func (s *site) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "HOME="+s.dir)
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// want returns an error unless two values are equal.
func want[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

func deployed(ctx context.Context, c kubernetes.Interface) error {
	d, err := c.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	slices, err := c.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
	if err != nil {
		return err
	}
	if len(slices.Items) != 1 {
		return fmt.Errorf("%d endpoint slices", len(slices.Items))
	}
	return errors.Join(want("available", d.Status.AvailableReplicas, 3), want("endpoints", len(slices.Items[0].Endpoints), 3))
}

func budgeted(ctx context.Context, c kubernetes.Interface) error {
	b, err := c.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return want("disruptions allowed", b.Status.DisruptionsAllowed, 2)
}

func jobsDone(ctx context.Context, c kubernetes.Interface) error {
	var problems []error
	for name, pods := range map[string]int32{"plain": 3, "indexed": 4, "trained": 1} {
		job, err := c.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		complete := false
		for _, condition := range job.Status.Conditions {
			complete = complete || condition.Type == "Complete" && condition.Status == corev1.ConditionTrue
		}
		problems = append(problems, want(name+" succeeded", job.Status.Succeeded, pods), want(name+" complete", complete, true))
		if u := job.Status.UncountedTerminatedPods; u != nil && len(u.Succeeded) > 0 {
			problems = append(problems, fmt.Errorf("%s has uncounted pods", name))
		}
	}
	return errors.Join(problems...)
}

func stateful(ctx context.Context, c kubernetes.Interface) error {
	set, err := c.AppsV1().StatefulSets(namespace).Get(ctx, "data", metav1.GetOptions{})
	if err != nil {
		return err
	}
	claims, err := c.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	bound := 0
	for _, claim := range claims.Items {
		if claim.Status.Phase == corev1.ClaimBound {
			bound++
		}
	}
	return errors.Join(want("available", set.Status.AvailableReplicas, 2), want("bound claims", bound, 2))
}

func daemons(ctx context.Context, c kubernetes.Interface) error {
	set, err := c.AppsV1().DaemonSets(namespace).Get(ctx, "agent", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return want("available", set.Status.NumberAvailable, nodes)
}

func autoscaled(ctx context.Context, c kubernetes.Interface) error {
	hpa, err := c.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "scaled", metav1.GetOptions{})
	if err != nil {
		return err
	}
	d, err := c.AppsV1().Deployments(namespace).Get(ctx, "scaled", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return errors.Join(want("desired", hpa.Status.DesiredReplicas, 4), want("available", d.Status.AvailableReplicas, 4))
}

// claimed: a device was allocated to the pod of a job, which has ended, so its claim is
// deleted.
func claimed(ctx context.Context, c kubernetes.Interface) error {
	pods, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "job-name=trained"})
	if err != nil {
		return err
	}
	claims, err := c.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(pods.Items) != 1 || len(pods.Items[0].Status.ResourceClaimStatuses) != 1 {
		return fmt.Errorf("%d pods", len(pods.Items))
	}
	return errors.Join(want("node with the device", pods.Items[0].Spec.NodeName, nodeName(1)), want("claims", len(claims.Items), 0))
}

// gated: a pod waits for its gate.
func gated(ctx context.Context, c kubernetes.Interface) error {
	pod, err := c.CoreV1().Pods(namespace).Get(ctx, "gated", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		if len(pod.Status.Conditions) == 0 || pod.Status.Conditions[0].Reason != "SchedulingGated" {
			return fmt.Errorf("conditions %+v", pod.Status.Conditions)
		}
		if _, err := c.CoreV1().Pods(namespace).Patch(ctx, "gated", types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return want("phase", pod.Status.Phase, corev1.PodRunning)
}

// typeChecked: the controller manager writes what is wrong with the types of expressions into
// the status of policies. It reads the types from the OpenAPI documents.
func typeChecked(ctx context.Context, c kubernetes.Interface) error {
	var problems []error
	for name, warnings := range map[string]int{"owned": 0, "mistyped": 1} {
		p, err := c.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		problems = append(problems, want(name+" observed generation", p.Status.ObservedGeneration, p.Generation))
		if p.Status.TypeChecking == nil {
			problems = append(problems, errors.New(name+" is not checked"))
			continue
		}
		found := p.Status.TypeChecking.ExpressionWarnings
		problems = append(problems, want(name+" warnings", len(found), warnings))
		if len(found) == 1 && !strings.Contains(found[0].Warning, "apps/v1, Kind=Deployment: ERROR") {
			problems = append(problems, fmt.Errorf("%s: %s", name, found[0].Warning))
		}
	}
	return errors.Join(problems...)
}

func scheduled(ctx context.Context, c kubernetes.Interface) error {
	job, err := c.BatchV1().CronJobs(namespace).Get(ctx, "often", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return want("succeeded", job.Status.LastSuccessfulTime != nil, true)
}

// roll gives the pods of a Deployment a new template.
func (s *site) roll(ctx context.Context, name string, revision int) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"revision":"%d"}}}}}`, revision)
	_, err := s.client.AppsV1().Deployments(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// replaced rolls a Deployment and drains a node.
func (s *site) replaced(t *testing.T) {
	if err := s.roll(t.Context(), "web", 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployment is rolled", func() error {
		d, err := s.client.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return errors.Join(want("observed", d.Status.ObservedGeneration, d.Generation), want("updated", d.Status.UpdatedReplicas, 3), want("all", d.Status.Replicas, 3), want("available", d.Status.AvailableReplicas, 3))
	})
	s.kubectl(t, "drain", nodeName(0), "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=2m")
	eventually(t, "pods are elsewhere", func() error { return deployed(t.Context(), s.client) })
	s.kubectl(t, "uncordon", nodeName(0))
}

// loaded rolls a Deployment and runs jobs for a while, of which each second one needs a device.
func (s *site) loaded(t *testing.T) {
	if *load == 0 {
		t.Skip("-load is not set")
	}
	changed := s.counted(t)
	jobs := s.client.BatchV1().Jobs(namespace)
	background := metav1.DeletePropagationBackground
	ran := 0
	for ends := time.Now().Add(*load); time.Now().Before(ends); ran++ {
		if err := s.roll(t.Context(), "web", ran+2); err != nil {
			t.Fatal(err)
		}
		job := loadJob(ran)
		if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, job.Name, func() error {
			job, err := jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			claims, err := s.client.ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			return errors.Join(want("succeeded", job.Status.Succeeded, 1), want("claims", len(claims.Items), 0), deployed(t.Context(), s.client))
		})
		if err := jobs.Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the Deployment was rolled %d times, with a job each; events: %v", ran, changed())
}

// counted counts the events of what the load changes, so that the errors of controllers can be
// compared with their writes.
func (s *site) counted(t *testing.T) (counts func() map[string]int) {
	t.Helper()
	ctx, options := t.Context(), metav1.ListOptions{}
	events := map[string]int{}
	var watches []watch.Interface
	var counting sync.WaitGroup
	var mu sync.Mutex
	for name, start := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"replicasets": s.client.AppsV1().ReplicaSets(namespace).Watch, "poddisruptionbudgets": s.client.PolicyV1().PodDisruptionBudgets(namespace).Watch,
		"resourceclaims": s.client.ResourceV1().ResourceClaims(namespace).Watch, "pods": s.client.CoreV1().Pods(namespace).Watch,
	} {
		w, err := start(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, w)
		counting.Go(func() {
			for e := range w.ResultChan() {
				if e.Type == watch.Error { // the watch was stopped
					continue
				}
				mu.Lock()
				events[strings.ToLower(string(e.Type))+" "+name]++
				mu.Unlock()
			}
		})
	}
	return func() map[string]int {
		for _, w := range watches {
			w.Stop()
		}
		counting.Wait()
		return events
	}
}

// loadJob returns a job of the load.
func loadJob(i int) *batchv1.Job {
	main := corev1.Container{Name: "main", Image: "job"}
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}
	if template := "gpu"; i%2 == 1 {
		main.Resources.Claims = []corev1.ResourceClaim{{Name: template}}
		pod.ResourceClaims = []corev1.PodResourceClaim{{Name: template, ResourceClaimTemplateName: &template}}
	}
	pod.Containers = []corev1.Container{main}
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-%d", i)}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}
}

// deleted deletes the namespace with all workloads.
func (s *site) deleted(t *testing.T) {
	s.kubectl(t, "delete", "namespace", namespace, "--timeout=3m")
	eventually(t, "volumes are released", func() error {
		list, err := s.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, volume := range list.Items {
			if volume.Status.Phase == corev1.VolumeBound {
				return fmt.Errorf("%s is bound", volume.Name)
			}
		}
		return nil
	})
}
