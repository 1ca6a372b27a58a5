package plugin

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// certificates holds the plugins for CertificateSigningRequests and ClusterTrustBundles:
// approving, signing and attesting require the verbs approve, sign and attest on the signer,
// and no client certificate is issued for system:masters.
type certificates struct {
	authz        services.Authz
	group        string // of certificatesigningrequests
	clientSigner string
}

// signingRequest is the part of a CertificateSigningRequest that admission reads.
type signingRequest struct {
	Spec struct {
		Request    []byte `json:"request"`
		SignerName string `json:"signerName"`
	} `json:"spec"`
	Status struct {
		Certificate string `json:"certificate"`
		Conditions  []any  `json:"conditions"`
	} `json:"status"`
}

func parseSigningRequest(object []byte) (signingRequest, error) {
	var csr signingRequest
	if err := json.Unmarshal(object, &csr); err != nil {
		return csr, services.BadRequest("the certificate signing request is not readable: %v", err)
	}
	return csr, nil
}

// approval checks that the user may approve or deny the request.
func (p certificates) approval(ctx context.Context, r *review.Review) error {
	if !r.Is(services.OperationUpdate, p.group, "certificatesigningrequests/approval") {
		return nil
	}
	csr, err := parseSigningRequest(r.OldObject)
	if err != nil {
		return err
	}
	return p.mayUse(ctx, r, csr.Spec.SignerName, "approve")
}

// signing checks that the user may set the certificate or the conditions of a request. Those for
// pods have no certificate without conditions.
func (p certificates) signing(ctx context.Context, r *review.Review) error {
	if !r.Is(services.OperationUpdate, p.group, "certificatesigningrequests/status") && !r.Is(services.OperationUpdate, p.group, "podcertificaterequests/status") {
		return nil
	}
	before, err := parseSigningRequest(r.OldObject)
	if err != nil {
		return err
	}
	after, err := parseSigningRequest(r.Object)
	if err != nil {
		return err
	}
	if before.Status.Certificate == after.Status.Certificate && equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) {
		return nil
	}
	return p.mayUse(ctx, r, before.Spec.SignerName, "sign")
}

// mayUse returns Forbidden unless the user has the verb on the signer, or on all signers
// of its domain.
func (p certificates) mayUse(ctx context.Context, r *review.Review, signer, verb string) error {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, err := p.authz.Authorize(ctx, services.Attributes{
			User: r.User, Verb: verb, Group: p.group, Version: "*", Resource: "signers", Name: name,
		})
		if err != nil {
			return err
		}
		if decision.Allowed {
			return nil
		}
	}
	what := "requests"
	if verb == "attest" {
		what = "trust bundles"
	}
	return r.Forbid("user not permitted to %s %s with signerName %q", verb, what, signer)
}

// attesting checks that the user may say which certificates are those of a signer. An update that only
// the garbage collector could have made passes, and so does one of a bundle of no signer.
func (p certificates) attesting(ctx context.Context, r *review.Review) error {
	create := r.Is(services.OperationCreate, p.group, "clustertrustbundles")
	if !create && !r.Is(services.OperationUpdate, p.group, "clustertrustbundles") {
		return nil
	}
	bundle, err := parseSigningRequest(r.Object)
	if err != nil || create && bundle.Spec.SignerName == "" {
		return err
	}
	if !create {
		before, err := parseSigningRequest(r.OldObject)
		if err != nil {
			return err
		}
		if before.Spec.SignerName != bundle.Spec.SignerName {
			return r.Forbid("changing signerName is forbidden")
		}
		if same, err := review.SameButForCollection(r.Object, r.OldObject); err != nil || same || bundle.Spec.SignerName == "" {
			return err
		}
	}
	return p.mayUse(ctx, r, bundle.Spec.SignerName, "attest")
}

// subject rejects requests for client certificates with the group system:masters.
func (p certificates) subject(_ context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, p.group, "certificatesigningrequests") {
		return nil
	}
	csr, err := parseSigningRequest(r.Object)
	if err != nil || csr.Spec.SignerName != p.clientSigner {
		return err
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return r.Forbid("spec.request holds no PEM block")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return r.Forbid("spec.request is not a certificate request: %v", err)
	}
	// Servers that get groups in headers trim white space.
	if slices.ContainsFunc(request.Subject.Organization, func(o string) bool { return strings.TrimSpace(o) == services.GroupMasters }) {
		return r.Forbid("use of signer %s with group %s is not allowed", p.clientSigner, services.GroupMasters)
	}
	return nil
}
