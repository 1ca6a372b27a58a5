package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-platform/portico/services/vocabulary"
)

// TestServiceRanges takes addresses of Services from a ServiceCIDR that is added, and watches
// over their IPAddresses.
func TestServiceRanges(t *testing.T) {
	besides(t)
	client := kubernetes.NewForConfigOrDie(protobuf(startAllInOne(t, vocabulary.K8s()).Cluster))
	ctx := t.Context()
	ranges, addresses, services := client.NetworkingV1().ServiceCIDRs(), client.NetworkingV1().IPAddresses(), client.CoreV1().Services("default")
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	eventually(t, "the default range is ready", func() bool {
		r, err := ranges.Get(ctx, "kubernetes", metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(r.Status.Conditions, networkingv1.ServiceCIDRConditionReady) && r.Spec.CIDRs[0] == "10.0.0.0/24"
	})
	eventually(t, "the address of the API is shown", func() bool {
		a, err := addresses.Get(ctx, "10.0.0.1", metav1.GetOptions{})
		return err == nil && a.Spec.ParentRef.Name == "kubernetes" && a.Spec.ParentRef.Namespace == "default"
	})
	if _, err := services.Create(ctx, service("early", "10.9.0.7"), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "The range of valid IPs is 10.0.0.0/24") {
		t.Errorf("an address outside of all ranges: %v", err)
	}
	if _, err := ranges.Create(ctx, &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.9.0.0/24"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Create(ctx, service("inside", "10.9.0.7"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := addresses.Get(ctx, "10.9.0.7", metav1.GetOptions{})
	if err != nil || a.Spec.ParentRef.Resource != "services" || a.Spec.ParentRef.Name != "inside" || a.Labels[networkingv1.LabelManagedBy] != "ipallocator.k8s.io" ||
		a.Labels[networkingv1.LabelIPAddressFamily] != "IPv4" {
		t.Errorf("the address in use: %+v, %v", a, err)
	}
	reserved := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.9.0.8"}, Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "things", Name: "a"}}}
	if _, err := addresses.Create(ctx, reserved, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Create(ctx, service("reserved", "10.9.0.8"), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "already allocated") {
		t.Errorf("a reserved address: %v", err)
	}
	reserved.Name = "2001:DB8::1"
	if _, err := addresses.Create(ctx, reserved, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), `must be in canonical form ("2001:db8::1")`) {
		t.Errorf("another spelling: %v", err)
	}

	eventually(t, "the added range is protected", func() bool {
		r, err := ranges.Get(ctx, "more", metav1.GetOptions{})
		return err == nil && len(r.Finalizers) == 1 && meta.IsStatusConditionTrue(r.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	})
	if err := ranges.Delete(ctx, "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Create(ctx, service("late", "10.9.0.9"), metav1.CreateOptions{}); err == nil {
		t.Error("a Service has an address of a deleted range")
	}
	if r, err := ranges.Get(ctx, "more", metav1.GetOptions{}); err != nil || r.DeletionTimestamp == nil {
		t.Errorf("the range in use: %+v, %v", r, err)
	}
	if err := services.Delete(ctx, "inside", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := addresses.Get(ctx, "10.9.0.7", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the address of a deleted Service: %v", err)
	}
	if err := addresses.Delete(ctx, "10.9.0.8", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the unused range is gone", func() bool {
		_, err := ranges.Get(ctx, "more", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
