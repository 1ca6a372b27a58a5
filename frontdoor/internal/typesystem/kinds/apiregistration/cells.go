package apiregistration

import (
	"cmp"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showApiServiceBackend(o *cell.Object) any {
	service := o.Spec.Get("service")
	if !service.Exists() {
		return "Local"
	}
	return service.Get("namespace").String() + "/" + service.Get("name").String()
}

func showApiServiceAvailable(o *cell.Object) any {
	available := cell.Condition(o.Status.Get("conditions"), "Available")
	status := cmp.Or(available.Get("status").String(), "Unknown")
	if reason := available.Get("reason").String(); status != "True" && reason != "" {
		return status + " (" + reason + ")"
	}
	return status
}
