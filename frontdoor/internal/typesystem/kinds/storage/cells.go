package storage

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showStorageClassName(o *cell.Object) any {
	name := o.Metadata.Get("name").String()
	for _, annotation := range []string{"storageclass", "storageclass.beta"} {
		if o.Metadata.Get("annotations", o.Names.Qualified(annotation, "is-default-class")).Is("true") {
			return name + " (default)"
		}
	}
	return name
}

func showTokenAudiences(o *cell.Object) any {
	var audiences []string
	for request := range o.Spec.Get("tokenRequests").Items() {
		audiences = append(audiences, request.Get("audience").String())
	}
	return strings.Join(audiences, ",")
}
