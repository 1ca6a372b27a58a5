package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// tour is one client that uses what every service does.
type tour struct {
	*cluster.Cluster
	config    *rest.Config
	client    *kubernetes.Clientset
	namespace string
}

// tour goes through the API of a front door: each request succeeds at once, and what workers do
// is done soon.
func (r *rolling) tour(t *testing.T, door string) {
	t.Helper()
	c := r.connect(t, door)
	v := &tour{Cluster: c, config: protobuf(c), client: kubernetes.NewForConfigOrDie(protobuf(c)), namespace: newNamespace(t, c.Client(t))}
	eventually(t, "the namespace has its account", func() bool {
		_, err := v.client.CoreV1().ServiceAccounts(v.namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	for _, step := range []func(*testing.T){v.objects, v.watch, v.types, v.account, v.limits, v.custom, v.certificate, v.bootstrapToken, v.removal} {
		if step(t); t.Failed() {
			t.FailNow()
		}
	}
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// objects creates, reads, lists, updates, applies, patches and deletes.
func (v *tour) objects(t *testing.T) {
	ctx, in := t.Context(), v.client.CoreV1().ConfigMaps(v.namespace)
	for i := range 3 {
		_, err := in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), Labels: map[string]string{"made-by": "e2e"}}}, metav1.CreateOptions{})
		must(t, "create", err)
	}
	_, err := in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c0"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("create again: %v", err)
	}
	part, err := in.List(ctx, metav1.ListOptions{LabelSelector: ours, Limit: 2})
	must(t, "list", err)
	rest, err := in.List(ctx, metav1.ListOptions{LabelSelector: ours, Continue: part.Continue})
	must(t, "list on", err)
	if len(part.Items) != 2 || len(rest.Items) != 1 || rest.Items[0].Name != "c2" {
		t.Errorf("the list in chunks has %d and %d items", len(part.Items), len(rest.Items))
	}
	stale, err := in.Get(ctx, "c0", metav1.GetOptions{})
	must(t, "get", err)
	changed := stale.DeepCopy()
	changed.Data = map[string]string{"key": "1"}
	_, err = in.Update(ctx, changed, metav1.UpdateOptions{})
	must(t, "update", err)
	if _, err = in.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
	wanted := applycorev1.ConfigMap("c0", v.namespace).WithData(map[string]string{"key": "2"})
	if _, err = in.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "skew"}); !apierrors.IsConflict(err) {
		t.Errorf("apply of a field of another manager: %v", err)
	}
	_, err = in.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "skew", Force: true})
	must(t, "apply", err)
	for kind, patch := range map[types.PatchType]string{types.MergePatchType: `{"data":{"merged":"yes"}}`, types.StrategicMergePatchType: `{"metadata":{"labels":{"strategic":"yes"}}}`,
		types.JSONPatchType: `[{"op":"test","path":"/data/key","value":"2"},{"op":"add","path":"/data/added","value":"yes"}]`} {
		_, err = in.Patch(ctx, "c0", kind, []byte(patch), metav1.PatchOptions{})
		must(t, string(kind), err)
	}
	read, err := in.Get(ctx, "c0", metav1.GetOptions{})
	must(t, "get", err)
	if fmt.Sprint(read.Data) != "map[added:yes key:2 merged:yes]" || read.Labels["strategic"] != "yes" || len(read.ManagedFields) < 2 {
		t.Errorf("read %v, labels %v, %d managers", read.Data, read.Labels, len(read.ManagedFields))
	}
	dry, err := in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dry"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, "dry run", err)
	if _, err := in.Get(ctx, dry.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run has stored: %v", err)
	}
	must(t, "delete", in.Delete(ctx, "c0", metav1.DeleteOptions{}))
	must(t, "delete all", in.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: ours}))
	left, err := in.List(ctx, metav1.ListOptions{LabelSelector: ours})
	must(t, "list", err)
	if len(left.Items) > 0 {
		t.Errorf("%d objects are left", len(left.Items))
	}
}

// watch follows a collection from a list on, and once more from the same version, which is a replay.
func (v *tour) watch(t *testing.T) {
	ctx, in := t.Context(), v.client.CoreV1().Secrets(v.namespace)
	list, err := in.List(ctx, metav1.ListOptions{})
	must(t, "list", err)
	for _, again := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(ctx, patience)
		w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: ours})
		must(t, "watch", err)
		if !again {
			made, err := in.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "w", Labels: map[string]string{"made-by": "e2e"}}}, metav1.CreateOptions{})
			must(t, "create", err)
			made.StringData = map[string]string{"a": "b"}
			_, err = in.Update(ctx, made, metav1.UpdateOptions{})
			must(t, "update", err)
			must(t, "delete", in.Delete(ctx, "w", metav1.DeleteOptions{}))
		}
		for _, want := range []string{"ADDED w 0", "MODIFIED w 1", "DELETED w 1"} {
			e := <-w.ResultChan()
			secret, _ := e.Object.(*corev1.Secret)
			if secret == nil {
				t.Fatalf("the watch has %+v, want %s", e, want)
			}
			if got := fmt.Sprintf("%s %s %d", e.Type, secret.Name, len(secret.Data)); got != want {
				t.Fatalf("the watch has %s, want %s", got, want)
			}
		}
		w.Stop()
		cancel()
	}
}

// types writes objects of types with defaults, subresources and addresses.
func (v *tour) types(t *testing.T) {
	ctx, deployments := t.Context(), v.client.AppsV1().Deployments(v.namespace)
	web, err := deployments.Create(ctx, deployment("web"), metav1.CreateOptions{})
	must(t, "create a deployment", err)
	web.Status.ObservedGeneration = web.Generation
	_, err = deployments.UpdateStatus(ctx, web, metav1.UpdateOptions{})
	must(t, "update its status", err)
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	must(t, "read its scale", err)
	scale.Spec.Replicas = 3
	_, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
	must(t, "scale it", err)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	made, err := v.client.CoreV1().Services(v.namespace).Create(ctx, service, metav1.CreateOptions{})
	must(t, "create a service", err)
	again := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: corev1.ServiceSpec{ClusterIP: made.Spec.ClusterIP, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := v.client.CoreV1().Services(v.namespace).Create(ctx, again, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a second service with %s: %v", made.Spec.ClusterIP, err)
	}
	must(t, "delete the service", v.client.CoreV1().Services(v.namespace).Delete(ctx, "web", metav1.DeleteOptions{}))
}

// account uses a token, which has the rights of its account as soon as these are written.
func (v *tour) account(t *testing.T) {
	ctx := t.Context()
	token, err := v.client.CoreV1().ServiceAccounts(v.namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, "request a token", err)
	config := rest.CopyConfig(v.config)
	config.BearerToken = token.Status.Token
	account := kubernetes.NewForConfigOrDie(config)
	review, err := v.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}, metav1.CreateOptions{})
	must(t, "review the token", err)
	if name := "system:serviceaccount:" + v.namespace + ":default"; review.Status.User.Username != name {
		t.Errorf("the token is of %+v, want %s", review.Status, name)
	}
	if _, err := account.CoreV1().ConfigMaps(v.namespace).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a list without rights: %v", err)
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}
	_, err = v.client.RbacV1().Roles(v.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: rules}, metav1.CreateOptions{})
	must(t, "create a role", err)
	_, err = v.client.RbacV1().RoleBindings(v.namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: v.namespace}}}, metav1.CreateOptions{})
	must(t, "create a binding", err)
	eventually(t, "the account has the rights", func() bool {
		_, err := account.CoreV1().ConfigMaps(v.namespace).List(ctx, metav1.ListOptions{})
		return err == nil
	})
	must(t, "delete the binding", v.client.RbacV1().RoleBindings(v.namespace).Delete(ctx, "reader", metav1.DeleteOptions{}))
	eventually(t, "the account has lost the rights", func() bool {
		_, err := account.CoreV1().ConfigMaps(v.namespace).List(ctx, metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	})
}

// limits are enforced by admission, as soon as it has learned of them.
func (v *tour) limits(t *testing.T) {
	ctx := t.Context()
	most := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	_, err := v.client.CoreV1().LimitRanges(v.namespace).Create(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "memory"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: most, Default: most}}}}, metav1.CreateOptions{})
	must(t, "create limits", err)
	pod := func(memory string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}}}}}
	}
	eventually(t, "a pod above the limits is refused", func() bool {
		_, err := v.client.CoreV1().Pods(v.namespace).Create(ctx, pod("2Gi"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	})
	made, err := v.client.CoreV1().Pods(v.namespace).Create(ctx, pod("1Gi"), metav1.CreateOptions{})
	must(t, "create a pod", err)
	if made.Spec.ServiceAccountName != "default" || len(made.Spec.Volumes) == 0 {
		t.Errorf("the pod has the account %q and %d volumes", made.Spec.ServiceAccountName, len(made.Spec.Volumes))
	}
}

// custom defines a type, and writes and watches an object of it.
func (v *tour) custom(t *testing.T) {
	plural := "t" + strings.ReplaceAll(v.namespace, "-", "")
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	name := plural + ".skew.example.com"
	ok(t, v.Cluster, post(definitions, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},"spec":{"group":"skew.example.com","scope":"Namespaced",
		"names":{"plural":%q,"singular":%[2]q,"kind":"T%[2]s","listKind":"T%[2]sList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
		"properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","maximum":5,"default":4}}}}}}}]}}`, name, plural)))
	path := "/apis/skew.example.com/v1/namespaces/" + v.namespace + "/" + plural
	eventually(t, "the type is served", func() bool { return v.Ask(t, cluster.Request{Path: path}).Code == http.StatusOK })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watch, err := v.Send(ctx, cluster.Request{Path: path + "?watch=1"})
	must(t, "watch", err)
	defer watch.Body.Close()
	object := fmt.Sprintf(`{"apiVersion":"skew.example.com/v1","kind":"T%s","metadata":{"name":"a"},"spec":{}}`, plural)
	if made := ok(t, v.Cluster, post(path, object)); !strings.Contains(made.Body, `"n":4`) {
		t.Errorf("without the default: %s", made.Body)
	}
	if refused := v.Ask(t, post(path, strings.Replace(object, `{}}`, `{"n":6}}`, 1))); refused.Code != http.StatusUnprocessableEntity {
		t.Errorf("above the maximum: %d", refused.Code)
	}
	if events := bufio.NewScanner(watch.Body); !events.Scan() || !strings.Contains(events.Text(), `"ADDED"`) {
		t.Errorf("the watch has %s", events.Text())
	}
	ok(t, v.Cluster, cluster.Request{Method: http.MethodDelete, Path: definitions + "/" + name})
	eventually(t, "the definition is gone", func() bool {
		return v.Ask(t, cluster.Request{Path: definitions + "/" + name}).Code == http.StatusNotFound
	})
}

// certificate is signed by csr-signer.
func (v *tour) certificate(t *testing.T) {
	ctx, requests := t.Context(), v.client.CertificatesV1().CertificateSigningRequests()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, "make a key", err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "skew"}}, key)
	must(t, "make a request", err)
	request, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: v.namespace}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}}}, metav1.CreateOptions{})
	must(t, "create the request", err)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Skew"}}
	_, err = requests.UpdateApproval(ctx, v.namespace, request, metav1.UpdateOptions{})
	must(t, "approve it", err)
	eventually(t, "the certificate is signed", func() bool {
		signed, err := requests.Get(ctx, v.namespace, metav1.GetOptions{})
		return err == nil && len(signed.Status.Certificate) > 0
	})
	must(t, "delete the request", requests.Delete(ctx, v.namespace, metav1.DeleteOptions{}))
}

// bootstrapToken is deleted by token-cleaner when it has expired.
func (v *tour) bootstrapToken(t *testing.T) {
	ctx, secrets := t.Context(), v.client.CoreV1().Secrets(metav1.NamespaceSystem)
	_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}, Type: "bootstrap.kubernetes.io/token", StringData: map[string]string{
		"token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)}}, metav1.CreateOptions{})
	must(t, "create a token", err)
	eventually(t, "the expired token is deleted", func() bool {
		_, err := secrets.Get(ctx, "bootstrap-token-abcdef", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// removal deletes the namespace, whose content lifecycle deletes.
func (v *tour) removal(t *testing.T) {
	ctx, in := t.Context(), v.client.CoreV1().Namespaces()
	must(t, "delete the namespace", in.Delete(ctx, v.namespace, metav1.DeleteOptions{}))
	eventually(t, "the namespace is gone", func() bool {
		_, err := in.Get(ctx, v.namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
