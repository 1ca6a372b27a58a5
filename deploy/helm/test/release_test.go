package test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRelease installs the chart in a Portico, upgrades it with other values, rolls back,
// tests and uninstalls it. The hooks run; pods do not.
func TestRelease(t *testing.T) {
	s := start(t)
	s.makeNamespace(t, namespace)
	n := s.runJobs(t, namespace, map[string]string{"--server": s.config.Host, "--certificate-authority": filepath.Join(filepath.Dir(s.kubeconfig), "pki", "ca.crt")})
	helm := func(args ...string) string {
		t.Helper()
		out, err := runHelm(t.Context(), append(args, "--namespace", namespace, "--kubeconfig", s.kubeconfig)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if notes := helm("install", release, chart, "--timeout=2m"); !strings.Contains(notes, "get secret portico-pki-admin") {
		t.Errorf("the notes: %s", notes)
	}
	first, firstSecrets := s.specs(t), s.secrets(t)
	s.checkMounts(t)
	if r := s.restarts(t); r != ([2]string{}) {
		t.Errorf("NATS is restarted by the installation: %q", r)
	}
	if said := n.output("portico-identities-hook"); len(said) != 1 || strings.Count(said[0], "created the Secret") < 18 {
		t.Errorf("the hook has said %q", said)
	}

	for _, members := range []string{"1", "5"} {
		_, err := runHelm(t.Context(), "upgrade", release, chart, "--set=etcd.replicas="+members, "--timeout=2m", "--namespace", namespace, "--kubeconfig", s.kubeconfig)
		if err == nil || !strings.Contains(err.Error(), "this etcd has 3 members, and their number cannot be changed to "+members) {
			t.Errorf("%s members of etcd: %v", members, err)
		}
	}

	helm("upgrade", release, chart, "--values", "values/changed.yaml", "--timeout=2m")
	second, secondSecrets := s.specs(t), s.secrets(t)
	s.checkMounts(t)
	checkUpgrade(t, first, second)
	checkRenamed(t, firstSecrets, secondSecrets)
	scaled := s.restarts(t)
	if scaled[0] == "" || scaled[0] != scaled[1] {
		t.Errorf("NATS is not restarted with its new configuration: %q", scaled)
	}

	helm("rollback", release, "1", "--timeout=2m")
	if third := s.specs(t); !maps.Equal(first, third) {
		t.Errorf("rolled back: %s", changes(first, third))
	}
	s.checkMounts(t)
	history := helm("history", release)
	for _, want := range []string{"Install complete", "Upgrade complete", "Rollback to 1"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history has no %q: %s", want, history)
		}
	}

	helm("upgrade", release, chart, "--timeout=2m") // the same values: nothing changes
	if again := s.specs(t); !maps.Equal(first, again) {
		t.Errorf("upgraded to the same: %s", changes(first, again))
	}
	before, restarted := s.secrets(t), s.restarts(t)
	if restarted == scaled || restarted[0] != restarted[1] {
		t.Errorf("NATS is not restarted with its former configuration: %q", restarted)
	}
	helm("upgrade", release, chart, "--timeout=2m")
	if again := s.restarts(t); again != restarted {
		t.Errorf("NATS is restarted although nothing has changed: %q, before %q", again, restarted)
	}
	if after := s.secrets(t); !maps.EqualFunc(before, after, func(a, b *corev1.Secret) bool { return a.ResourceVersion == b.ResourceVersion }) {
		t.Error("Secrets were written although nothing has changed")
	}

	s.testRenewal(t, n)

	helm("test", release, "--timeout=2m")
	if said := n.output("portico-test"); len(said) != 1 || !strings.Contains(said[0], "is ready") {
		t.Errorf("the test has said %q", said)
	}

	s.testTheft(t, helm)

	helm("uninstall", release, "--timeout=2m")
	eventually(t, "everything is gone", func() error {
		if left := s.specs(t); len(left) > 0 {
			return apierrors.NewConflict(appsv1.Resource("deployments"), strings.Join(slices.Sorted(maps.Keys(left)), ","), nil)
		}
		return nil
	})
	if left := s.secrets(t); left["portico-pki"] == nil {
		t.Error("the authorities have gone with the release")
	}
}

// specs returns the labels, specs and rules of the release's objects, by kind and name.
func (s *site) specs(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range []string{"apps/v1/deployments", "apps/v1/statefulsets", "policy/v1/poddisruptionbudgets", "autoscaling/v1/horizontalpodautoscalers",
		"networking.k8s.io/v1/networkpolicies", "v1/services", "v1/serviceaccounts", "batch/v1/cronjobs", "rbac.authorization.k8s.io/v1/roles"} {
		list, err := s.dynamic.Resource(resourceOf(kind)).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
		if err != nil {
			t.Fatal(kind, err)
		}
		for _, o := range list.Items {
			if o.GetAnnotations()["helm.sh/hook"] != "" {
				continue
			}
			// The Job of the identities writes it, and restarts reads it.
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations", "checksum/identities")
			if left, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "metadata", "annotations"); len(left) == 0 {
				unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations")
			}
			what := map[string]any{"labels": o.GetLabels(), "spec": o.Object["spec"], "rules": o.Object["rules"]}
			content, err := jsonOf(what)
			if err != nil {
				t.Fatal(err)
			}
			found[o.GetKind()+" "+o.GetName()] = content
		}
	}
	return found
}

// secrets returns the identities.
func (s *site) secrets(t *testing.T) map[string]*corev1.Secret {
	t.Helper()
	list, err := s.client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*corev1.Secret{}
	for _, secret := range list.Items {
		found[secret.Name] = &secret
	}
	return found
}

// checkMounts checks that each key that a pod of the release mounts exists in a Secret.
func (s *site) checkMounts(t *testing.T) {
	t.Helper()
	secrets, checked := s.secrets(t), 0
	look := func(pod, name string, items []corev1.KeyToPath) {
		if secrets[name] == nil {
			t.Errorf("%s: there is no Secret %s", pod, name)
			return
		}
		for _, item := range items {
			if checked++; len(secrets[name].Data[item.Key]) == 0 {
				t.Errorf("%s: the Secret %s has no %s", pod, name, item.Key)
			}
		}
	}
	pods := map[string]corev1.PodSpec{}
	deployments, err := s.client.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		pods[d.Name] = d.Spec.Template.Spec
	}
	sets, err := s.client.AppsV1().StatefulSets(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range sets.Items {
		pods[d.Name] = d.Spec.Template.Spec
	}
	for name, pod := range pods {
		for _, v := range pod.Volumes {
			if v.Secret != nil {
				look(name, v.Secret.SecretName, v.Secret.Items)
				for _, arg := range pod.Containers[0].Args {
					if _, file, ok := strings.Cut(arg, "=/pki/"); ok {
						look(name, v.Secret.SecretName, []corev1.KeyToPath{{Key: file}})
					}
				}
			}
			if v.Projected != nil {
				for _, source := range v.Projected.Sources {
					look(name, source.Secret.Name, source.Secret.Items)
				}
			}
		}
	}
	if len(pods) != 11 || checked < 60 {
		t.Errorf("%d keys of %d pods: too few to say anything", checked, len(pods))
	}
}

// checkUpgrade compares two releases: exactly the objects that the values affect differ.
func checkUpgrade(t *testing.T, first, second map[string]string) {
	t.Helper()
	var gone, added, changed []string
	for name, content := range first {
		if second[name] == "" {
			gone = append(gone, name)
		} else if second[name] != content {
			changed = append(changed, name)
		}
	}
	for name := range second {
		if first[name] == "" {
			added = append(added, name)
		}
	}
	slices.Sort(changed)
	// The flags of all NATS clients have the new members.
	want := []string{"CronJob portico-identities", "Deployment portico-admission", "Deployment portico-authz", "Deployment portico-frontdoor", "Deployment portico-store",
		"Deployment portico-watch-hub", "Role portico-identities", "StatefulSet portico-nats"}
	if !slices.Equal(changed, want) {
		t.Errorf("changed %q, want %q", changed, want)
	}
	if want := []string{"HorizontalPodAutoscaler portico-authz"}; !slices.Equal(added, want) {
		t.Errorf("added %q, want %q", added, want)
	}
	for _, name := range gone {
		if !strings.HasPrefix(name, "NetworkPolicy ") && name != "PodDisruptionBudget portico-store" {
			t.Errorf("gone: %s", name)
		}
	}
	if len(gone) != 14 {
		t.Errorf("%d are gone, want 13 network policies and a budget: %q", len(gone), gone)
	}
	if !strings.Contains(second["Deployment portico-frontdoor"], `"replicas":4`) || !strings.Contains(second["Deployment portico-frontdoor"], "--max-requests-inflight=500") {
		t.Error("the front door is not as it should be")
	}
}

// checkRenamed checks identities after an upgrade with another name of the front door and
// two NATS members: keys and seeds are unchanged.
func checkRenamed(t *testing.T, before, after map[string]*corev1.Secret) {
	t.Helper()
	for name, old := range before {
		for key, content := range old.Data {
			if should := name == "portico-pki" || key == "serving.crt" || key == "server.conf" || name == "portico-pki-admin" && key == "kubeconfig"; bytes.Equal(content, after[name].Data[key]) == should {
				t.Errorf("%s in %s: should have changed: %t", key, name, should)
			}
		}
	}
	if len(after) != len(before)+2 {
		t.Errorf("%d Secrets, then %d", len(before), len(after))
	}
	block, _ := pem.Decode(after["portico-pki-frontdoor"].Data["serving.crt"])
	if block == nil {
		t.Fatal("no serving certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"api.example.com", "portico-frontdoor.suite.svc", "portico-frontdoor.suite.svc.cluster.local"} {
		if err := certificate.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
}

func changes(a, b map[string]string) string {
	var lines []string
	for name := range a {
		if a[name] != b[name] {
			lines = append(lines, name+"\n  "+a[name]+"\n  "+b[name])
		}
	}
	for name := range b {
		if a[name] == "" {
			lines = append(lines, "more: "+name)
		}
	}
	return strings.Join(lines, "\n")
}
