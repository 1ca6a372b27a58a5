package discovery

import (
	"cmp"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

func showSlicePorts(o *cell.Object) any {
	var ports []string
	for p := range o.Get("ports").Items() {
		ports = append(ports, cmp.Or(p.Get("port").Text(), p.Get("name").String(), "*"))
	}
	return cmp.Or(cell.AtMost(3, ports), cell.Unset)
}

func showSliceEndpoints(o *cell.Object) any {
	var all []string
	for endpoint := range o.Get("endpoints").Items() {
		all = append(all, cell.Texts(endpoint.Get("addresses"))...)
	}
	return cmp.Or(cell.AtMost(3, all), cell.Unset)
}
