package ownservice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
)

const portName = "https"

// object returns an object with the metadata that the Service, its Endpoints and its
// EndpointSlice share.
func (k *Keeper) object(apiVersion, kind string, labels map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": k.Vocabulary.APIService, "namespace": namespace, "labels": labels}}
}

func (k *Keeper) service(clusterIP string) map[string]any {
	o := k.object("v1", "Service", map[string]any{"component": "apiserver", "provider": k.Vocabulary.APIService})
	port := map[string]any{"name": portName, "protocol": "TCP", "port": int64(publicPort), "targetPort": int64(k.Self.Port)}
	spec := map[string]any{"type": "ClusterIP", "sessionAffinity": "None", "ports": []any{port}}
	if clusterIP != "" {
		spec["clusterIP"] = clusterIP
	}
	o["spec"] = spec
	return o
}

// endpoints returns the Endpoints of front doors, which may have different ports.
func (k *Keeper) endpoints(alive []records.Address) map[string]any {
	o := k.object("v1", "Endpoints", map[string]any{k.Vocabulary.Qualified("endpointslice", "skip-mirror"): "true"})
	var subsets []any
	for _, same := range byPort(alive) {
		var addresses []any
		for _, a := range same {
			addresses = append(addresses, map[string]any{"ip": a.IP})
		}
		subsets = append(subsets, map[string]any{"addresses": addresses, "ports": []any{port(same[0])}})
	}
	o["subsets"] = subsets
	return o
}

// slice returns the EndpointSlice. It can have only one port, and has that of most front
// doors.
func (k *Keeper) slice(alive []records.Address) map[string]any {
	o := k.object(k.Vocabulary.Group("discovery.")+"/v1", "EndpointSlice",
		map[string]any{k.Vocabulary.Qualified("", "service-name"): k.Vocabulary.APIService})
	most := slices.MaxFunc(byPort(alive), func(a, b []records.Address) int { return cmp.Compare(len(a), len(b)) })
	o["addressType"] = "IPv4"
	if strings.Contains(most[0].IP, ":") {
		o["addressType"] = "IPv6"
	}
	var endpoints []any
	for _, a := range most {
		endpoints = append(endpoints, map[string]any{"addresses": []any{a.IP}, "conditions": map[string]any{"ready": true}})
	}
	o["endpoints"], o["ports"] = endpoints, []any{port(most[0])}
	return o
}

func port(a records.Address) map[string]any {
	return map[string]any{"name": portName, "port": int64(a.Port), "protocol": "TCP"}
}

// byPort groups addresses by port, sorted and without duplicates.
func byPort(alive []records.Address) (groups [][]records.Address) {
	alive = slices.SortedFunc(slices.Values(alive), func(a, b records.Address) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.IP, b.IP))
	})
	for _, a := range slices.Compact(alive) {
		if last := len(groups) - 1; last >= 0 && groups[last][0].Port == a.Port {
			groups[last] = append(groups[last], a)
		} else {
			groups = append(groups, []records.Address{a})
		}
	}
	return groups
}
