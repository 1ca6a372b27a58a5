// Package networking holds the functions of Ingresses, IngressClasses and
// NetworkPolicies. It serves "Resources and their fields" of the specification.
package networking

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"blockOrSelectors":  blockOrSelectors,
		"classParameters":   classParameters,
		"ingressBackend":    ingressBackend,
		"ingressClass":      ingressClass,
		"ingressHost":       ingressHost,
		"ingressPath":       ingressPath,
		"ingressRules":      ingressRules,
		"ipBlockExceptions": ipBlockExceptions,
		"oldIngressBackend": oldIngressBackend,
		"policyPortRange":   policyPortRange,
		"serviceRanges":     serviceRanges,
		"tlsSecrets":        tlsSecrets,
		"twoPolicyTypes":    twoPolicyTypes,
	},
	Derive: map[string]rules.DeriveFunc{
		"defaultPolicyTypes": defaultPolicyTypes,
	},
	Cells: map[string]cell.Func{
		"showIngressClass":    showIngressClass,
		"showIngressHosts":    showIngressHosts,
		"showIngressPorts":    showIngressPorts,
		"showParentOfAddress": showParentOfAddress,
	},
	Convert: map[string]kinds.ConvertFunc{
		"ingressFromV1beta1": ingressFromV1beta1,
		"ingressToV1beta1":   ingressToV1beta1,
	},
}
