package discovery

import (
	"net/netip"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/services"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"k8s.io/apimachinery/pkg/util/validation"
)

// sliceAddresses checks that addresses are of the addressType.
func sliceAddresses(c *rules.Check, m, _ map[string]any, at *field.Path) {
	kind := rules.Text(m, "addressType")
	for i, endpoint := range rules.Objects(m, "endpoints") {
		for j, address := range rules.Texts(endpoint, "addresses") {
			where := &field.Path{Parent: &field.Path{Parent: &field.Path{Parent: &field.Path{Parent: at, Name: "endpoints"}, Index: i}, Name: "addresses"}, Index: j}
			ip, err := netip.ParseAddr(address)
			switch {
			case kind == "FQDN":
				if address == "" {
					c.Required(where, "")
				}
				c.Must(validation.IsDNS1123Subdomain, strings.TrimSuffix(address, "."), where)
			case kind == "IPv4" && (err != nil || !ip.Is4()):
				c.Invalid(where, address, wrongAddress(c, address, err, "must be a valid IPv4 address"))
			case kind == "IPv6" && (err != nil || !ip.Is6()):
				c.Invalid(where, address, wrongAddress(c, address, err, "must be a valid IPv6 address"))
			default:
				services.CheckNotSpecialIP(c, address, where)
			}
		}
	}
}

// wrongAddress returns what is wrong with an address that is none, or of the other family.
func wrongAddress(c *rules.Check, address string, err error, otherFamily string) string {
	if err != nil && !c.Release.Before(release.V136) {
		return format.IP(address)[0]
	}
	return otherFamily
}

// namesOfEndpoints warns of slices of names, which are no longer used.
func namesOfEndpoints(c *rules.Check, m, old map[string]any, _ *field.Path) {
	if old == nil && rules.Text(m, "addressType") == "FQDN" {
		c.Warn("spec.addressType: FQDN endpoints are deprecated") // the field is in no spec
	}
}
