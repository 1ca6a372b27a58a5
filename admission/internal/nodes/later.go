package nodes

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// later reports whether the rules of release 1.36 hold.
func (p Plugin) later() bool { return !p.Release.Before(release.V136) }

// added checks objects of the types that later releases restrict.
func (p Plugin) added(ctx context.Context, r *review.Review, name string) error {
	switch r.Type() {
	case resource.GroupResource{Group: p.Vocabulary.Group("resource."), Resource: "resourceslices"}:
		return slice(r, name)
	case resource.GroupResource{Group: p.Vocabulary.Group("certificates."), Resource: "certificatesigningrequests"}:
		return p.signing(r, name)
	case resource.GroupResource{Group: p.Vocabulary.Group("certificates."), Resource: "podcertificaterequests"}:
		return p.podCertificate(ctx, r, name)
	}
	return nil
}

// slice lets a node create and delete the slices of its own devices. Which ones it may update,
// authorization knows.
func slice(r *review.Review, name string) error {
	var object map[string]any
	var err error
	verb := "create"
	switch r.Operation {
	case services.OperationCreate:
		object, err = r.Decoded()
	case services.OperationDelete:
		verb = "delete"
		object, err = tree.Decode(r.OldObject)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if tree.Text(object, "spec", "nodeName") != name {
		return r.Forbid("can only %s ResourceSlice with the same NodeName as the requesting node", verb)
	}
	return nil
}

// signing lets a node request certificates of nodes for itself only.
func (p Plugin) signing(r *review.Review, name string) error {
	if r.Operation != services.OperationCreate || p.Gates.On(featuregate.InsecureNodeRequests) {
		return nil
	}
	object, err := r.Decoded()
	if err != nil {
		return err
	}
	if signer := tree.Text(object, "spec", "signerName"); signer != p.Vocabulary.Signers.NodeServing && signer != p.Vocabulary.Signers.NodeClient {
		return nil
	}
	var of struct {
		Spec struct {
			Request []byte `json:"request"`
		} `json:"spec"`
	}
	if err := read(r, &of, nil); err != nil {
		return err
	}
	block, _ := pem.Decode(of.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return r.Forbid("unable to parse csr: PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return r.Forbid("unable to parse csr: %v", err)
	}
	if want := "system:node:" + name; request.Subject.CommonName != want {
		return r.Forbid("can only create a node CSR with CN=%s", want)
	}
	return nil
}

// podCertificate lets a node request certificates for pods that run on it, as what they are.
// What may be wrong because a cache is late is a Conflict (409), so that the node tries again.
func (p Plugin) podCertificate(ctx context.Context, r *review.Review, name string) error {
	switch {
	case r.Operation != services.OperationCreate:
		return r.Forbid("unexpected operation %v", r.Operation)
	case r.Subresource != "":
		return r.Forbid("unexpected subresource %v", r.Subresource)
	}
	object, err := r.Decoded()
	if err != nil {
		return err
	}
	asked := func(field string) string { return tree.Text(object, "spec", field) }
	conflict := func(format string, args ...any) error {
		return services.Conflict(r.Group, r.Resource, r.Name, fmt.Sprintf(format, args...))
	}
	which := r.Namespace + "/" + asked("podName")
	if asked("nodeName") != name {
		return r.Forbid("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", asked("nodeName"), name)
	}
	node, err := p.stored(ctx, "nodes", "", name)
	if err != nil {
		return err
	}
	pod, err := p.stored(ctx, "pods", r.Namespace, asked("podName"))
	if err != nil {
		return err
	}
	_, mirrored := pod.Metadata.Annotations[p.Vocabulary.Qualified("", "config.mirror")]
	switch {
	case node.Metadata.UID != asked("nodeUID"):
		return conflict("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)", which, asked("nodeUID"), node.Metadata.UID)
	case pod.Metadata.UID != asked("podUID"):
		return conflict("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q", which, asked("podUID"), pod.Metadata.UID)
	case pod.Spec.NodeName != name:
		return r.Forbid("pod %q is not running on node %q named in the PodCertificateRequest", which, name)
	case mirrored:
		return r.Forbid("pod %q is a mirror pod", which)
	case pod.Spec.ServiceAccountName != asked("serviceAccountName"):
		return r.Forbid("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", which, asked("serviceAccountName"), pod.Spec.ServiceAccountName)
	}
	account, err := p.stored(ctx, "serviceaccounts", r.Namespace, asked("serviceAccountName"))
	if err != nil {
		return err
	}
	if account.Metadata.UID != asked("serviceAccountUID") {
		return conflict("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)", which, asked("serviceAccountUID"), account.Metadata.UID)
	}
	return nil
}

// referenced returns what a pod needs of the API beyond what package references finds; "" if
// nothing.
func referenced(spec map[string]any) string {
	if len(tree.List(spec, "resourceClaims")) > 0 {
		return "resourceclaims"
	}
	for _, v := range tree.Objects(spec, "volumes") {
		switch {
		case v["csi"] != nil:
			return "csidrivers (via CSI volumes)"
		case v["glusterfs"] != nil:
			return "endpoints (via glusterFS volumes)"
		case v["ephemeral"] != nil:
			return "persistentvolumeclaims (via ephemeral volumes)"
		}
		for _, source := range tree.Objects(v, "projected", "sources") {
			switch {
			case source["serviceAccountToken"] != nil:
				return "serviceaccounts (via projected volumes)"
			case source["clusterTrustBundle"] != nil:
				return "clustertrustbundles"
			case source["podCertificate"] != nil:
				return "podcertificates"
			}
		}
	}
	return ""
}

// claimsOfStatus refuses a status of a pod that changes which claims of devices it has.
func claimsOfStatus(r *review.Review, name string, now, before map[string]any) error {
	a, b := tree.List(now, "status", "resourceClaimStatuses"), tree.List(before, "status", "resourceClaimStatuses")
	if len(a)+len(b) > 0 && !tree.Equal(a, b) {
		return r.Forbid("node %q cannot update resource claim statues", name)
	}
	const extended = "extendedResourceClaimStatus"
	if !tree.Equal(tree.Value(now, "status", extended), tree.Value(before, "status", extended)) {
		return r.Forbid("node %q cannot update extended resource claim status", name)
	}
	return nil
}
