// Package certificates holds the functions of requests for certificates and of trust bundles. The module
// csr-signer signs the certificates. It serves "Resources and their fields" of the
// specification.
package certificates

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"bundleCertificates":   bundleCertificates,
		"bundleName":           bundleName,
		"certificateStatus":    certificateStatus,
		"oldCertificateStatus": oldCertificateStatus,
		"podRequestKey":        podRequestKey,
		"podRequestLifetime":   podRequestLifetime,
		"podRequestStatus":     podRequestStatus,
		"requestSignature":     requestSignature,
		"signerOfV1":           signerOfV1,
	},
	Derive: map[string]rules.DeriveFunc{
		"signerOfOldRequest": signerOfOldRequest,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"setRequester":         setRequester,
		"updateSigningRequest": updateSigningRequest,
	},
	Cells: map[string]cell.Func{
		"showPodRequestState":   showPodRequestState,
		"showRequestCondition":  showRequestCondition,
		"showRequestedDuration": showRequestedDuration,
	},
	Convert: map[string]kinds.ConvertFunc{
		"signingRequestFromV1beta1": signingRequestFromV1beta1,
	},
}
