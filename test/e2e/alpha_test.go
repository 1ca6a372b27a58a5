package e2e

import (
	"net/http"
	"strings"
	"testing"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	nodev1alpha1 "k8s.io/api/node/v1alpha1"
	rbacv1alpha1 "k8s.io/api/rbac/v1alpha1"
	storagev1alpha1 "k8s.io/api/storage/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestAlphaVersions uses the alpha versions of 1.21 with typed clients, in JSON and in
// Protobuf, and reads what they have written in other versions.
func TestAlphaVersions(t *testing.T) {
	t.Parallel()
	a := startAllInOne(t, vocabulary.K8s(), "--emulated-version=1.21", "--runtime-config=api/alpha=true")
	for suffix, media := range map[string]string{"j": "application/json", "p": "application/vnd.kubernetes.protobuf"} {
		config := rest.CopyConfig(a.Config())
		config.ContentType, config.AcceptContentTypes = media, media
		testAlpha(t, a.Cluster, kubernetes.NewForConfigOrDie(config), suffix)
	}
	for _, path := range []string{"/openapi/v2", "/apis/node.k8s.io"} {
		if answer := ok(t, a.Cluster, cluster.Request{Path: path}); !strings.Contains(answer.Body, "v1alpha1") {
			t.Errorf("%s does not show the alpha versions", path)
		}
	}
	priority := post("/apis/scheduling.k8s.io/v1alpha1/priorityclasses", `{"apiVersion":"scheduling.k8s.io/v1alpha1","kind":"PriorityClass","metadata":{"name":"alpha"},"value":7}`)
	priority.Header = http.Header{"Accept": {"application/vnd.kubernetes.protobuf"}}
	if answer := ok(t, a.Cluster, priority); !strings.HasPrefix(answer.Body, "k8s\x00") {
		t.Errorf("no Protobuf: %q", answer.Body)
	}
	a.restart(t)
	if code := status(t, a.Cluster, "/apis/node.k8s.io/v1alpha1/runtimeclasses"); code != http.StatusNotFound {
		t.Errorf("an alpha version is served by default: %d", code)
	}
	if code := status(t, a.Cluster, "/apis/internal.apiserver.k8s.io"); code != http.StatusNotFound {
		t.Errorf("a group that has an alpha version only is served by default: %d", code)
	}
	if code := status(t, a.Cluster, "/apis/node.k8s.io/v1/runtimeclasses/class-j"); code != http.StatusOK {
		t.Errorf("an object that was written in an alpha version is gone: %d", code)
	}
}

func testAlpha(t *testing.T, c *cluster.Cluster, client *kubernetes.Clientset, suffix string) {
	t.Helper()
	ctx, named := t.Context(), func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name + "-" + suffix} }
	class, err := client.NodeV1alpha1().RuntimeClasses().Create(ctx, &nodev1alpha1.RuntimeClass{ObjectMeta: named("class"), Spec: nodev1alpha1.RuntimeClassSpec{RuntimeHandler: "h"}}, metav1.CreateOptions{})
	if err != nil || class.Spec.RuntimeHandler != "h" {
		t.Fatalf("%+v, %v", class, err)
	}
	if stable, err := client.NodeV1().RuntimeClasses().Get(ctx, class.Name, metav1.GetOptions{}); err != nil || stable.Handler != "h" {
		t.Errorf("in v1: %+v, %v", stable, err)
	}
	binding, err := client.RbacV1alpha1().ClusterRoleBindings().Create(ctx, &rbacv1alpha1.ClusterRoleBinding{ObjectMeta: named("binding"),
		RoleRef: rbacv1alpha1.RoleRef{Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1alpha1.Subject{{Kind: "User", Name: "jane"}}}, metav1.CreateOptions{})
	if err != nil || binding.Subjects[0].APIVersion != "rbac.authorization.k8s.io/v1alpha1" {
		t.Fatalf("%+v, %v", binding, err)
	}
	eventually(t, "the binding has an effect", func() bool {
		return c.Ask(t, cluster.Request{Path: "/api/v1/namespaces/default/configmaps", Header: http.Header{"Impersonate-User": {"jane"}}}).Code == http.StatusOK
	})
	volume := "v"
	attachment, err := client.StorageV1alpha1().VolumeAttachments().Create(ctx, &storagev1alpha1.VolumeAttachment{ObjectMeta: named("attachment"), Spec: storagev1alpha1.VolumeAttachmentSpec{
		Attacher: "example.com", NodeName: "n", Source: storagev1alpha1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stable, err := client.StorageV1().VolumeAttachments().Get(ctx, attachment.Name, metav1.GetOptions{}); err != nil || *stable.Spec.Source.PersistentVolumeName != volume {
		t.Errorf("in v1: %+v, %v", stable, err)
	}
	versions := client.InternalV1alpha1().StorageVersions()
	version, err := versions.Create(ctx, &internalv1alpha1.StorageVersion{ObjectMeta: metav1.ObjectMeta{Name: suffix + ".pods"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	common := "v1"
	version.Status = internalv1alpha1.StorageVersionStatus{CommonEncodingVersion: &common, StorageVersions: []internalv1alpha1.ServerStorageVersion{
		{APIServerID: "a", EncodingVersion: "v1", DecodableVersions: []string{"v1"}}}}
	if version, err = versions.UpdateStatus(ctx, version, metav1.UpdateOptions{}); err != nil || len(version.Status.StorageVersions) != 1 {
		t.Errorf("%+v, %v", version, err)
	}
}
