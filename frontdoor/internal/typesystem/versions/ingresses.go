package versions

import (
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// oldIngress names its service and port side by side in the backend, the port being
// a number or a name, and has another name for the default backend.
var oldIngress = &shape{
	toBest: func(_ vocabulary.Vocabulary, ingress map[string]any) {
		changed(ingress, "spec", func(spec map[string]any) {
			rename(spec, "backend", "defaultBackend")
			changed(spec, "defaultBackend", backendToBest)
			eachIngressPath(spec, func(path map[string]any) {
				changed(path, "backend", backendToBest)
				if path["pathType"] == nil {
					path["pathType"] = "ImplementationSpecific"
				}
			})
		})
	},
	fromBest: func(_ vocabulary.Vocabulary, ingress map[string]any) {
		changed(ingress, "spec", func(spec map[string]any) {
			rename(spec, "defaultBackend", "backend")
			changed(spec, "backend", backendFromBest)
			eachIngressPath(spec, func(path map[string]any) { changed(path, "backend", backendFromBest) })
		})
	},
}

// eachIngressPath changes each path of each rule.
func eachIngressPath(spec map[string]any, change func(map[string]any)) {
	eachChanged(spec, "rules", func(rule map[string]any) {
		changed(rule, "http", func(http map[string]any) { eachChanged(http, "paths", change) })
	})
}

// backendToBest moves the service below a field of its own. Clients say an empty
// name and port zero beside a backend that is not a service.
func backendToBest(backend map[string]any) {
	name, _ := take(backend, "serviceName")
	port, _ := take(backend, "servicePort")
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

func backendFromBest(backend map[string]any) {
	service, _ := take(backend, "service")
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
