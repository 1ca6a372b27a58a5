package networking

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// ingressFromV1beta1 converts an Ingress in which a backend has its service's name and
// port beside each other, the port as a number or a name, and in which the default
// backend has another name.
func ingressFromV1beta1(_ vocabulary.Vocabulary, ingress map[string]any) {
	edit.Member(ingress, "spec", func(spec map[string]any) {
		edit.Rename(spec, "backend", "defaultBackend")
		edit.Member(spec, "defaultBackend", backendFromV1beta1)
		eachIngressPath(spec, func(path map[string]any) {
			edit.Member(path, "backend", backendFromV1beta1)
			if path["pathType"] == nil {
				path["pathType"] = "ImplementationSpecific"
			}
		})
	})
}

func ingressToV1beta1(_ vocabulary.Vocabulary, ingress map[string]any) {
	edit.Member(ingress, "spec", func(spec map[string]any) {
		edit.Rename(spec, "defaultBackend", "backend")
		edit.Member(spec, "backend", backendToV1beta1)
		eachIngressPath(spec, func(path map[string]any) { edit.Member(path, "backend", backendToV1beta1) })
	})
}

// eachIngressPath changes each path of each rule.
func eachIngressPath(spec map[string]any, change func(map[string]any)) {
	edit.Items(spec, "rules", func(rule map[string]any) {
		edit.Member(rule, "http", func(http map[string]any) { edit.Items(http, "paths", change) })
	})
}

// backendFromV1beta1 moves the service below a field of its own. Clients send an empty
// name and port zero with a backend that is not a service.
func backendFromV1beta1(backend map[string]any) {
	name, _ := edit.Take(backend, "serviceName")
	port, _ := edit.Take(backend, "servicePort")
	service := map[string]any{}
	if name != nil && name != "" {
		service["name"] = name
	}
	switch port := port.(type) {
	case nil:
	case string:
		service["port"] = map[string]any{"name": port}
	case int64:
		if port != 0 {
			service["port"] = map[string]any{"number": port}
		}
	}
	if len(service) > 0 {
		backend["service"] = service
	}
}

func backendToV1beta1(backend map[string]any) {
	service, _ := edit.Take(backend, "service")
	if service, ok := service.(map[string]any); ok {
		if name, ok := service["name"]; ok {
			backend["serviceName"] = name
		}
		port := tree.Child(service, "port")
		if name, _ := port["name"].(string); name != "" {
			backend["servicePort"] = name
		} else if number, ok := port["number"]; ok {
			backend["servicePort"] = number
		}
	}
}
