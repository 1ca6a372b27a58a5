package versions

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// generator generates objects from the schemas of the catalogue. It omits empty values, and
// corrects combinations of fields that are invalid (see valid).
type generator struct {
	*rand.Rand
	types      *catalogue.Catalogue
	vocabulary vocabulary.Vocabulary
}

func newGenerator(types *catalogue.Catalogue, v vocabulary.Vocabulary, seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 0)), types, v}
}

// object returns an object of a type.
func (g *generator) object(t *catalogue.Type) map[string]any {
	o, _ := g.value(t.Schema(), "", 0).(map[string]any)
	if o == nil {
		o = map[string]any{}
	}
	o["apiVersion"], o["kind"] = t.APIVersion(), t.Kind
	o["metadata"] = map[string]any{"name": g.word(), "uid": g.word()}
	if g.chance() {
		o["metadata"].(map[string]any)["annotations"] = map[string]any{g.word(): g.word()}
	}
	g.valid(o, t)
	return o
}

func (g *generator) chance() bool { return g.IntN(3) > 0 }
func (g *generator) word() string { return fmt.Sprintf("w%d", g.IntN(1000)) }

// value returns a value of a schema; nil when it would be empty.
func (g *generator) value(s *spec.Schema, name string, depth int) any {
	if strings.HasSuffix(s.Ref.String(), "api.resource.Quantity") {
		return fmt.Sprintf("%d", 1+g.IntN(9))
	}
	s = g.types.Resolve(s)
	if s == nil || depth > 12 || len(s.Type) == 0 {
		return nil
	}
	switch s.Type[0] {
	case "object":
		return g.members(s, name, depth)
	case "array":
		var list []any
		for range 1 + g.IntN(3) {
			if item := g.value(s.Items.Schema, "", depth+1); item != nil {
				list = append(list, item)
			}
		}
		if list == nil {
			return nil
		}
		return list
	case "integer":
		return int64(1 + g.IntN(100))
	case "boolean":
		return true
	case "string":
		return g.text(s.Format)
	}
	return nil
}

func (g *generator) text(format string) any {
	switch format {
	case "date-time":
		return fmt.Sprintf("2026-01-02T03:04:%02dZ", g.IntN(60))
	case "byte":
		return "AAAA"
	case "int-or-string":
		if g.chance() {
			return int64(1 + g.IntN(100))
		}
	}
	return g.word()
}

func (g *generator) members(s *spec.Schema, name string, depth int) any {
	if name == "openAPIV3Schema" {
		return map[string]any{"type": "object", "description": g.word()}
	}
	m := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[field]
		if field == "metadata" || !slices.Contains(s.Required, field) && !g.chance() {
			continue
		}
		if value := g.value(&property, field, depth+1); value != nil {
			m[field] = value
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		for range 1 + g.IntN(2) {
			if value := g.value(s.AdditionalProperties.Schema, "", depth+1); value != nil {
				m[g.word()] = value
			}
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// valid corrects an object where its schema allows more than its version.
func (g *generator) valid(o map[string]any, t *catalogue.Type) {
	spec := tree.Child(o, "spec")
	switch t.Kind {
	case "Ingress":
		g.backend(tree.Child(spec, "backend"))
		g.backend(tree.Child(spec, "defaultBackend"))
		for _, rule := range tree.List(spec, "rules") {
			for _, path := range tree.List(tree.Child(rule.(map[string]any), "http"), "paths") {
				g.backend(tree.Child(path.(map[string]any), "backend"))
			}
		}
	case "HorizontalPodAutoscaler":
		g.metrics(tree.List(spec, "metrics"))
		g.metrics(tree.List(tree.Child(o, "status"), "currentMetrics"))
	case "CustomResourceDefinition":
		if t.Version == "v1beta1" && spec != nil {
			g.oldDefinition(spec)
		}
	case "ClusterRoleBinding", "RoleBinding": // only a group can be converted
		for _, subject := range tree.List(o, "subjects") {
			if s := subject.(map[string]any); s["apiVersion"] != nil {
				s["apiVersion"] = g.word() + "/"
			}
		}
	case "EndpointSlice":
		g.topology(o)
	case "PodDisruptionBudget":
		// Each version writes one of the two meanings with the label; the other is
		// an empty selector.
		operator := map[string]string{"v1": "Exists", "v1beta1": "DoesNotExist"}[t.Version]
		other := map[string]any{"matchExpressions": []any{
			map[string]any{"key": g.vocabulary.Qualified("pdb", "deprecated-v1beta1-empty-selector-match"), "operator": operator}}}
		if spec != nil && g.chance() {
			spec["selector"] = []any{map[string]any{}, other}[g.IntN(2)]
		}
	}
}

// backend has either a service or a resource.
func (g *generator) backend(b map[string]any) {
	if b["serviceName"] != nil || b["servicePort"] != nil {
		delete(b, "resource")
		b["serviceName"], b["servicePort"] = g.word(), g.text("int-or-string")
	}
	if service := tree.Child(b, "service"); service != nil {
		delete(b, "resource")
		service["port"] = []any{map[string]any{"name": g.word()}, map[string]any{"number": int64(80)}}[g.IntN(2)]
	}
}

// metrics are often those of the CPU.
func (g *generator) metrics(list []any) {
	for _, item := range list {
		metric := item.(map[string]any)
		if resource := tree.Child(metric, "resource"); resource != nil && g.chance() {
			metric["type"], resource["name"] = "Resource", "cpu"
		}
	}
}

// oldDefinition sets fields either per version or in common.
func (g *generator) oldDefinition(spec map[string]any) {
	versions := tree.List(spec, "versions")
	for field, shared := range map[string]string{"schema": "validation", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns"} {
		each := len(versions) > 1 && g.chance()
		if each {
			delete(spec, shared)
		}
		for i, version := range versions {
			if i == 0 || !each {
				delete(version.(map[string]any), field)
			}
		}
	}
	if len(versions) > 0 {
		spec["version"] = versions[0].(map[string]any)["name"]
	} else if spec["version"] == nil {
		spec["version"] = "v1"
	}
}

// topology often has the zone and the host.
func (g *generator) topology(slice map[string]any) {
	zone, host := g.vocabulary.Qualified("topology", "zone"), g.vocabulary.Qualified("", "hostname")
	for _, item := range tree.List(slice, "endpoints") {
		endpoint := item.(map[string]any)
		if labels := tree.Child(endpoint, "topology"); labels != nil {
			if g.chance() {
				labels[zone] = g.word()
			}
			if g.chance() {
				labels[host] = g.word()
			}
			if endpoint["nodeName"] != nil && g.chance() {
				labels[host] = endpoint["nodeName"]
			}
		}
	}
}
