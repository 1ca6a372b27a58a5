package e2e

import (
	"net/http"
	"strings"
	"testing"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/replacing"
)

// TestBetaVersions works with versions and encodings of release 1.36 that are served on request
// only.
func TestBetaVersions(t *testing.T) {
	besides(t)
	a := startAllInOne(t, vocabulary.K8s(), "--runtime-config=api/beta=true", "--feature-gates=ClusterTrustBundle=true,CoordinatedLeaderElection=true,PodCertificateRequest=true,CBORServingAndStorage=true")
	t.Run("in CBOR", func(t *testing.T) { servesCBOR(t, a.Cluster) })
	client := kubernetes.NewForConfigOrDie(protobuf(a.Cluster))
	ctx := t.Context()
	claim := &resourcev1beta1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Spec: resourcev1beta1.ResourceClaimSpec{Devices: resourcev1beta1.DeviceClaim{
		Requests: []resourcev1beta1.DeviceRequest{{Name: "one", DeviceClassName: "gpu.example.com"},
			{Name: "either", FirstAvailable: []resourcev1beta1.DeviceSubRequest{{Name: "a", DeviceClassName: "gpu.example.com"}}}}}}}
	if _, err := client.ResourceV1beta1().ResourceClaims("default").Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stable, err := client.ResourceV1().ResourceClaims("default").Get(ctx, "claim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r := stable.Spec.Devices.Requests; len(r) != 2 || r[0].Exactly == nil || r[0].Exactly.DeviceClassName != "gpu.example.com" || r[0].Exactly.Count != 1 ||
		r[1].Exactly != nil || len(r[1].FirstAvailable) != 1 {
		t.Errorf("the claim in v1: %+v", r)
	}
	again, err := client.ResourceV1beta1().ResourceClaims("default").Get(ctx, "claim", metav1.GetOptions{})
	if r := again.Spec.Devices.Requests; err != nil || len(r) != 2 || r[0].DeviceClassName != "gpu.example.com" || r[0].AllocationMode != resourcev1beta1.DeviceAllocationModeExactCount {
		t.Errorf("the claim in v1beta1: %+v, %v", r, err)
	}
	claim.Spec.Devices.Requests[0].FirstAvailable = claim.Spec.Devices.Requests[1].FirstAvailable
	if _, err := client.ResourceV1beta1().ResourceClaims("default").Create(ctx, claim, metav1.CreateOptions{DryRun: []string{"All"}}); !apierrors.IsInvalid(err) {
		t.Errorf("a claim of two types: %v", err)
	}

	slice := &resourcev1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}, Spec: resourcev1beta1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: "n",
		Pool: resourcev1beta1.ResourcePool{Name: "n", ResourceSliceCount: 1}, Devices: []resourcev1beta1.Device{{Name: "gpu-0", Basic: &resourcev1beta1.BasicDevice{
			Attributes: map[resourcev1beta1.QualifiedName]resourcev1beta1.DeviceAttribute{"model": {StringValue: new(string)}}}}}}}
	if _, err := client.ResourceV1beta1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if s, err := client.ResourceV1().ResourceSlices().Get(ctx, "slice", metav1.GetOptions{}); err != nil || len(s.Spec.Devices[0].Attributes) != 1 {
		t.Errorf("the slice in v1: %+v, %v", s, err)
	}
	if s, err := client.ResourceV1beta2().ResourceSlices().Get(ctx, "slice", metav1.GetOptions{}); err != nil || len(s.Spec.Devices[0].Attributes) != 1 {
		t.Errorf("the slice in v1beta2: %+v, %v", s, err)
	}

	class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, DriverName: "example.com", Parameters: map[string]string{"a": "b"}}
	if _, err := client.StorageV1().VolumeAttributesClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if c, err := client.StorageV1beta1().VolumeAttributesClasses().Get(ctx, "fast", metav1.GetOptions{}); err != nil || c.Parameters["a"] != "b" {
		t.Errorf("the class in v1beta1: %+v, %v", c, err)
	}

	candidate := &coordinationv1beta1.LeaseCandidate{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Spec: coordinationv1beta1.LeaseCandidateSpec{
		LeaseName: "work", BinaryVersion: "1.36.0", EmulationVersion: "1.37.0", Strategy: "OldestEmulationVersion"}}
	if _, err := client.CoordinationV1beta1().LeaseCandidates("default").Create(ctx, candidate, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "spec.binaryVersion") {
		t.Errorf("a candidate that emulates a later version: %v", err)
	}
	candidate.Spec.EmulationVersion = "1.35.0"
	if _, err := client.CoordinationV1beta1().LeaseCandidates("default").Create(ctx, candidate, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	bundle := &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "example.com:roots:1"},
		Spec: certificatesv1beta1.ClusterTrustBundleSpec{SignerName: "example.com/roots", TrustBundle: string(a.Config().CAData)}}
	if _, err := client.CertificatesV1beta1().ClusterTrustBundles().Create(ctx, bundle, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	bundle.Name, bundle.Spec.TrustBundle = "roots", "none"
	if _, err := client.CertificatesV1beta1().ClusterTrustBundles().Create(ctx, bundle, metav1.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "must be named with prefix example.com:roots:") || !strings.Contains(err.Error(), "at least one trust anchor must be provided") {
		t.Errorf("a bundle without certificates: %v", err)
	}
	for path, want := range map[string]int{
		"/apis/resource.k8s.io/v1alpha3":              http.StatusNotFound, // alpha
		"/apis/storagemigration.k8s.io/v1beta1":       http.StatusNotFound, // its feature is off
		"/apis/networking.k8s.io/v1beta1/ingresses":   http.StatusNotFound, // removed
		"/apis/networking.k8s.io/v1beta1/ipaddresses": http.StatusOK,
		"/apis/storage.k8s.io/v1beta1/csidrivers":     http.StatusNotFound,
	} {
		if code := status(t, a.Cluster, path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	t.Run("Applied", func(t *testing.T) { replacing.Applied(t, a.Cluster) })
}
