package apps

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showReadyOfDesired(o *cell.Object) any {
	return cell.Fraction(o.Status.Get("readyReplicas").Int(), o.Spec.Get("replicas").Int())
}

func showOwner(o *cell.Object) any {
	for reference := range o.Metadata.Get("ownerReferences").Items() {
		if !reference.Get("controller").True() {
			continue
		}
		kind := reference.Get("kind").String()
		if group, _, ok := strings.Cut(reference.Get("apiVersion").String(), "/"); ok {
			kind += "." + group
		}
		return strings.ToLower(kind) + "/" + reference.Get("name").String()
	}
	return cell.None
}
