package test

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// restarts returns the checksums of the files of the NATS servers: in the annotations of the
// StatefulSet, and of its pods.
func (s *site) restarts(t *testing.T) [2]string {
	t.Helper()
	set, err := s.client.AppsV1().StatefulSets(namespace).Get(t.Context(), release+"-nats", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return [2]string{set.Annotations["checksum/identities"], set.Spec.Template.Annotations["checksum/identities"]}
}

// testRenewal runs the CronJob when all certificates are due: its account may restart NATS with
// the renewed ones, and nothing beyond that.
func (s *site) testRenewal(t *testing.T, n *node) {
	t.Helper()
	before, secrets := s.restarts(t), s.secrets(t)
	cron, err := s.client.BatchV1().CronJobs(namespace).Get(t.Context(), release+"-identities", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "renewal", Namespace: namespace}, Spec: cron.Spec.JobTemplate.Spec}
	job.Spec.Template.Spec.Containers[0].Args = append(job.Spec.Template.Spec.Containers[0].Args, "--renew-within=8760h")
	if _, err := s.client.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the renewal has ended", func() error {
		if len(n.output("renewal")) == 0 {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	if said := n.output("renewal")[0]; !strings.Contains(said, "restarts the pods of the StatefulSet portico-nats") {
		t.Errorf("the renewal has said %s", said)
	}
	const server = "portico-pki-portico-nats-0.portico-nats"
	if after := s.secrets(t); string(secrets[server].Data["server.crt"]) == string(after[server].Data["server.crt"]) {
		t.Error("the certificate of NATS was not renewed")
	}
	if after := s.restarts(t); after[0] == before[0] || after[0] != after[1] {
		t.Errorf("renewed certificates do not restart NATS: %q, before %q", after, before)
	}
	s.checkAccess(t, "portico-identities")
}

// checkAccess compares what the account of the identities may do with what it needs.
func (s *site) checkAccess(t *testing.T, account string) {
	t.Helper()
	for _, request := range []struct {
		verb, group, resource, name string
		allowed                     bool
	}{
		{"get", "apps", "statefulsets", "portico-nats", true},
		{"patch", "apps", "statefulsets", "portico-nats", true},
		{"update", "apps", "statefulsets", "portico-nats", false},
		{"delete", "apps", "statefulsets", "portico-nats", false},
		{"create", "apps", "statefulsets", "", false},
		{"list", "apps", "statefulsets", "", false},
		{"patch", "apps", "statefulsets", "portico-etcd", false},
		{"patch", "apps", "deployments", "portico-store", false},
		{"delete", "", "pods", "portico-nats-0", false},
		{"update", "", "secrets", "portico-pki", true},
		{"update", "", "secrets", "another", false},
		{"list", "", "secrets", "", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: request.verb, Group: request.group, Resource: request.resource, Name: request.name}}}
		answer, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed != request.allowed {
			t.Errorf("%s may %s %s %s: %t", account, request.verb, request.resource, request.name, answer.Status.Allowed)
		}
	}
}

// testTheft follows the documentation of what to do after a theft: the selector finds every Secret
// of the identities and every pod, and the upgrade makes new authorities.
func (s *site) testTheft(t *testing.T, helm func(...string) string) {
	t.Helper()
	const selector = "app.kubernetes.io/name=portico,app.kubernetes.io/instance=" + release
	before, restarted := s.secrets(t), s.restarts(t)
	if err := s.client.CoreV1().Secrets(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: selector}); err != nil {
		t.Fatal(err)
	}
	if left := s.secrets(t); len(left) > 0 {
		t.Fatalf("%d Secrets are left", len(left))
	}
	helm("upgrade", release, chart, "--timeout=2m")
	s.checkMounts(t)
	after := s.secrets(t)
	for name, old := range before {
		made := after[name]
		if made == nil && strings.Contains(name, "-nats-") {
			continue // of a member that is no more
		}
		for key, content := range old.Data {
			names := key == "kubeconfig" && name != "portico-pki-admin" // it has the names of files only
			if made == nil || !names && string(made.Data[key]) == string(content) {
				t.Errorf("%s in %s is the stolen one", key, name)
			}
		}
	}
	if again := s.restarts(t); again == restarted || again[0] != again[1] {
		t.Errorf("NATS is not restarted with its new identities: %q", again)
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := s.client.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sets, err := s.client.AppsV1().StatefulSets(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]map[string]string{}
	for _, d := range deployments.Items {
		pods[d.Name] = d.Spec.Template.Labels
	}
	for _, d := range sets.Items {
		pods[d.Name] = d.Spec.Template.Labels
	}
	for name, of := range pods {
		if !parsed.Matches(labels.Set(of)) {
			t.Errorf("the pods of %s are not selected", name)
		}
	}
	if len(pods) != 11 {
		t.Errorf("%d workloads", len(pods))
	}
}
