package networking

import (
	"cmp"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showIngressClass(o *cell.Object) any {
	return cmp.Or(o.Spec.Get("ingressClassName").String(), cell.None)
}

func showIngressHosts(o *cell.Object) any {
	var hosts []string
	seen := map[string]bool{}
	for rule := range o.Spec.Get("rules").Items() {
		if host := rule.Get("host").String(); host != "" && !seen[host] {
			seen[host] = true
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return "*"
	}
	return cell.AtMost(3, hosts)
}

func showIngressPorts(o *cell.Object) any {
	if o.Spec.Get("tls").Len() > 0 {
		return "80, 443"
	}
	return "80"
}

// showParentOfAddress returns the object that an address belongs to.
func showParentOfAddress(o *cell.Object) any {
	parent := o.Spec.Get("parentRef")
	if !parent.Exists() {
		return cell.None
	}
	parts := []string{strings.ToLower(parent.Get("resource").Text())}
	if group := parent.Get("group").Text(); group != "" {
		parts[0] += "." + strings.ToLower(group)
	}
	if namespace := parent.Get("namespace").Text(); namespace != "" {
		parts = append(parts, namespace)
	}
	return strings.Join(append(parts, parent.Get("name").Text()), "/")
}
