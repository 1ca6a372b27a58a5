package strategy

import (
	"reflect"

	"github.com/portico-platform/portico/services/tree"
)

// gated are the fields that release 1.21 does not take, unless they are there already.
var gated = [...]string{"internalTrafficPolicy", "topologyKeys"}

func dropGated(spec, before map[string]any) {
	for _, field := range gated {
		if before[field] == nil {
			delete(spec, field)
		}
	}
}

// createService completes the two fields for the one cluster IP.
func createService(obj map[string]any) {
	spec := element(obj["spec"])
	dropGated(spec, nil)
	if ip := text(spec["clusterIP"]); ip != "" && len(items(spec, "clusterIPs")) == 0 {
		spec["clusterIPs"] = []any{ip}
	}
}

// updateService keeps the addresses that the service was given, so that the
// manifest that made it can be applied again, and drops those that its new type
// does not have. What the client changes itself is left to the rules.
func updateService(obj, old map[string]any) {
	spec, before := tree.Object(obj, "spec"), element(old["spec"])
	dropGated(spec, before)
	if hasIPs(spec) && hasIPs(before) {
		keepMissing(spec, before, "clusterIP")
		keepMissing(spec, before, "clusterIPs")
	}
	if hasNodePorts(spec) && hasNodePorts(before) {
		keepNodePorts(spec, before)
	}
	if hasHealthPort(spec) && hasHealthPort(before) {
		keepMissing(spec, before, "healthCheckNodePort")
	}
	followClusterIP(spec, before)
	dropOfOtherType(spec, before)
	if status := element(obj["status"]); spec["type"] != "LoadBalancer" && len(element(status["loadBalancer"])) > 0 {
		tree.Object(obj, "status")["loadBalancer"] = map[string]any{} // the one there was is going
	}
}

func hasIPs(spec map[string]any) bool { return spec["type"] != "ExternalName" }

func hasNodePorts(spec map[string]any) bool {
	return spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

func hasHealthPort(spec map[string]any) bool {
	return spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

// keepNodePorts gives ports without a node port the one of the old port of that
// name, unless another port has taken it.
func keepNodePorts(spec, before map[string]any) {
	taken, named := map[any]bool{}, map[string]any{}
	for _, p := range items(spec, "ports") {
		taken[element(p)["nodePort"]] = true
	}
	for _, p := range items(before, "ports") {
		named[text(element(p)["name"])] = element(p)["nodePort"]
	}
	for _, p := range items(spec, "ports") {
		port := element(p)
		old := named[text(port["name"])]
		if n, _ := number(port["nodePort"]); n == 0 && old != nil && !taken[old] {
			port["nodePort"] = old
		}
	}
}

// followClusterIP lets the list follow the single field, for clients that know only
// that one.
func followClusterIP(spec, before map[string]any) {
	now, then := text(spec["clusterIP"]), text(before["clusterIP"])
	sameList := reflect.DeepEqual(items(spec, "clusterIPs"), items(before, "clusterIPs"))
	switch {
	case now == then || !sameList && len(items(spec, "clusterIPs")) > 0:
	case now == "":
		delete(spec, "clusterIPs")
	default:
		spec["clusterIPs"] = []any{now}
	}
	if now == "" {
		delete(spec, "clusterIP")
	}
}

// dropOfOtherType drops what the new type does not have, where the client left it
// as it was.
func dropOfOtherType(spec, before map[string]any) {
	drop := func(fields ...string) {
		for _, field := range fields {
			if reflect.DeepEqual(spec[field], before[field]) {
				delete(spec, field)
			}
		}
	}
	if hasIPs(before) && !hasIPs(spec) {
		if text(spec["clusterIP"]) == text(before["clusterIP"]) {
			drop("clusterIPs")
			delete(spec, "clusterIP")
		}
		drop("ipFamilies", "ipFamilyPolicy")
	}
	if hasNodePorts(before) && !hasNodePorts(spec) {
		drop("externalTrafficPolicy")
		dropNodePorts(spec, before)
	}
	if hasHealthPort(before) && !hasHealthPort(spec) {
		drop("healthCheckNodePort")
	}
	if before["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
		drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
	}
}

// dropNodePorts drops all node ports, unless the client has set another one.
func dropNodePorts(spec, before map[string]any) {
	had := map[int64]bool{}
	for _, p := range items(before, "ports") {
		n, _ := number(element(p)["nodePort"])
		had[n] = true
	}
	for _, p := range items(spec, "ports") {
		if n, given := number(element(p)["nodePort"]); given && !had[n] {
			return
		}
	}
	for _, p := range items(spec, "ports") {
		delete(element(p), "nodePort")
	}
}

// keepMissing is keep for a field that the client left out.
func keepMissing(obj, old map[string]any, field string) {
	switch v := obj[field].(type) {
	case nil:
		keep(obj, old, field)
	case string:
		if v == "" {
			keep(obj, old, field)
		}
	case int64:
		if v == 0 {
			keep(obj, old, field)
		}
	case []any:
		if len(v) == 0 {
			keep(obj, old, field)
		}
	}
}

// items returns the field's list.
func items(parent map[string]any, field string) []any {
	list, _ := parent[field].([]any)
	return list
}
