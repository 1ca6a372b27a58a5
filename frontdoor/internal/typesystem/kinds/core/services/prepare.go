package services

import (
	"reflect"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// createService sets clusterIPs from clusterIP.
func createService(_ kinds.Write, obj, _ map[string]any) {
	spec := rules.AsObject(obj["spec"])
	if ip := rules.Text(spec, "clusterIP"); ip != "" && len(rules.List(spec, "clusterIPs")) == 0 {
		spec["clusterIPs"] = []any{ip}
	}
}

// updateService keeps allocated addresses and ports that the client omits, so that the
// original manifest can be applied again, and drops fields that the new type does not have.
// Explicit changes are left to validation.
func updateService(w kinds.Write, obj, old map[string]any) {
	if w.Subresource != "" {
		return
	}
	spec, before := tree.Object(obj, "spec"), rules.AsObject(old["spec"])
	if hasIPs(spec) && hasIPs(before) {
		kinds.KeepMissing(spec, before, "clusterIP")
		kinds.KeepMissing(spec, before, "clusterIPs")
	}
	if hasNodePorts(spec) && hasNodePorts(before) {
		keepNodePorts(spec, before)
	}
	if hasHealthPort(spec) && hasHealthPort(before) {
		kinds.KeepMissing(spec, before, "healthCheckNodePort")
	}
	followClusterIP(spec, before)
	dropOfOtherType(w, spec, before)
	if status := rules.AsObject(obj["status"]); spec["type"] != "LoadBalancer" && len(rules.AsObject(status["loadBalancer"])) > 0 {
		tree.Object(obj, "status")["loadBalancer"] = map[string]any{} // its controller removes the load balancer
	}
}

func hasIPs(spec map[string]any) bool { return spec["type"] != "ExternalName" }

func hasNodePorts(spec map[string]any) bool {
	return spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

func hasHealthPort(spec map[string]any) bool {
	return spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

// keepNodePorts sets missing node ports to that of the old port with the same name, unless
// another port uses it.
func keepNodePorts(spec, before map[string]any) {
	taken, named := map[any]bool{}, map[string]any{}
	for _, p := range rules.List(spec, "ports") {
		taken[rules.AsObject(p)["nodePort"]] = true
	}
	for _, p := range rules.List(before, "ports") {
		named[rules.Text(rules.AsObject(p), "name")] = rules.AsObject(p)["nodePort"]
	}
	for _, p := range rules.List(spec, "ports") {
		port := rules.AsObject(p)
		old := named[rules.Text(port, "name")]
		if n, _ := rules.Whole(port["nodePort"]); n == 0 && old != nil && !taken[old] {
			port["nodePort"] = old
		}
	}
}

// followClusterIP updates clusterIPs when only clusterIP has changed, for clients that do
// not know clusterIPs.
func followClusterIP(spec, before map[string]any) {
	now, then := rules.Text(spec, "clusterIP"), rules.Text(before, "clusterIP")
	sameList := reflect.DeepEqual(rules.List(spec, "clusterIPs"), rules.List(before, "clusterIPs"))
	switch {
	case now == then || !sameList && len(rules.List(spec, "clusterIPs")) > 0:
	case now == "":
		delete(spec, "clusterIPs")
	default:
		spec["clusterIPs"] = []any{now}
	}
	if now == "" {
		delete(spec, "clusterIP")
	}
}

// dropOfOtherType removes the fields that the new type does not have, unless the client
// changed them.
func dropOfOtherType(w kinds.Write, spec, before map[string]any) {
	drop := func(fields ...string) {
		for _, field := range fields {
			if reflect.DeepEqual(spec[field], before[field]) {
				delete(spec, field)
			}
		}
	}
	if hasIPs(before) && !hasIPs(spec) {
		if rules.Text(spec, "clusterIP") == rules.Text(before, "clusterIP") {
			drop("clusterIPs")
			delete(spec, "clusterIP")
		}
		drop("ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
	}
	if isExternal(before, w.Release) && !isExternal(spec, w.Release) {
		drop("externalTrafficPolicy")
	}
	if hasNodePorts(before) && !hasNodePorts(spec) {
		dropNodePorts(spec, before)
	}
	if hasHealthPort(before) && !hasHealthPort(spec) {
		drop("healthCheckNodePort")
	}
	if before["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
		drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
	}
}

// dropNodePorts removes all node ports, unless the client set a new one.
func dropNodePorts(spec, before map[string]any) {
	had := map[int64]bool{}
	for _, p := range rules.List(before, "ports") {
		n, _ := rules.Whole(rules.AsObject(p)["nodePort"])
		had[n] = true
	}
	for _, p := range rules.List(spec, "ports") {
		if n, given := rules.Whole(rules.AsObject(p)["nodePort"]); given && !had[n] {
			return
		}
	}
	for _, p := range rules.List(spec, "ports") {
		delete(rules.AsObject(p), "nodePort")
	}
}
