package node

import (
	"k8s.io/apimachinery/pkg/selection"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/resource"
)

// checkLater returns the function that decides about a type from release 1.36 on, or nil
// where rules do. What a node creates, admission compares with its name.
func (a *Authorizer) checkLater(q services.Attributes) func(node string, q services.Attributes) services.Decision {
	v := a.config.Vocabulary
	switch (resource.GroupResource{Group: q.Group, Resource: q.Resource}) {
	case resource.GroupResource{Resource: "nodes"}:
		return ownNode
	case resource.GroupResource{Resource: "pods"}:
		return a.ownPods
	case resource.GroupResource{Group: v.Group("resource."), Resource: "resourceclaims"}:
		return a.readOnly(a.usesDevices, "get")
	case resource.GroupResource{Group: v.Group("resource."), Resource: "resourceslices"}:
		return a.ownSlices
	case resource.GroupResource{Group: v.Group("certificates."), Resource: "podcertificaterequests"}:
		return a.ownRequests
	}
	return nil
}

// ownNode decides about Nodes: a node may read its own, also before it exists.
func ownNode(node string, q services.Attributes) services.Decision {
	switch q.Subresource + "/" + q.Verb {
	case "/create", "/update", "/patch", "status/update", "status/patch":
		return allow()
	case "/get", "/list", "/watch":
		switch q.Name {
		case node:
			return allow()
		case "":
			return refuse("node '%s' cannot read all nodes, only its own Node object", node)
		}
		return refuse("node '%s' cannot read '%s', only its own Node object", node, q.Name)
	}
	return services.Decision{}
}

// ownPods decides about pods: a node may read those that are bound to it.
func (a *Authorizer) ownPods(node string, q services.Attributes) services.Decision {
	switch q.Subresource + "/" + q.Verb {
	case "/create", "/delete", "status/update", "status/patch", "eviction/create":
		return allow()
	case "/get":
		return a.readOnly(a.runs, "get")(node, q)
	case "/list", "/watch":
		switch {
		case selects(q, "spec.nodeName", node), q.Name != "" && a.runs(node, q.Namespace, q.Name):
			return allow()
		case q.Name != "":
			return refuse("no relationship found between node '%s' and this object", node)
		}
		return refuse("can only list/watch pods with spec.nodeName field selector")
	}
	return services.Decision{}
}

// ownSlices decides about ResourceSlices: a node may do everything with its own.
func (a *Authorizer) ownSlices(node string, q services.Attributes) services.Decision {
	if q.Subresource != "" {
		return refuse("cannot authorize ResourceSlice subresources")
	}
	switch q.Verb {
	case "create":
		return allow()
	case "get", "update", "patch", "delete":
		return ofNode(a.hasSlice, node, q)
	case "list", "watch", "deletecollection":
		if selects(q, "spec.nodeName", node) {
			return allow()
		}
		return refuse("can only list/watch/deletecollection resourceslices with nodeName field selector")
	}
	return refuse("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection")
}

// ownRequests decides about PodCertificateRequests: a node may create and read those for its
// pods.
func (a *Authorizer) ownRequests(node string, q services.Attributes) services.Decision {
	if q.Subresource != "" {
		return refuse("nodes may not access the status subresource of PodCertificateRequests")
	}
	switch q.Verb {
	case "create":
		return allow()
	case "get":
		return ofNode(a.hasRequest, node, q)
	case "list", "watch":
		if selects(q, "spec.nodeName", node) {
			return allow()
		}
		return refuse("can only list/watch podcertificaterequests with nodeName field selector")
	}
	return refuse("nodes may not %s podcertificaterequests", q.Verb)
}

// selects reports whether the field selector of a request requires a value of a field.
func selects(q services.Attributes, field, value string) bool {
	selector, err := ledger.ParseFields(q.FieldSelector)
	if err != nil {
		return false
	}
	for _, r := range selector.Requirements() {
		if r.Field == field && r.Operator == selection.Equals && r.Value == value {
			return true
		}
	}
	return false
}
