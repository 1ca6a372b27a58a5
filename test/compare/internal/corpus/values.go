package corpus

import (
	"strings"

	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

// variant is a named value for a field.
type variant struct {
	name  string
	value any
}

// Times in the past that no server generates.
const moment, preciseMoment = "2021-04-08T01:02:03Z", "2021-04-08T01:02:03.000004Z"

// sample returns a plausible value; for an object, one with its required fields.
func (w *walker) sample(name string, s *openapi.Schema) any {
	if s != nil && strings.HasSuffix(s.Ref, ".MicroTime") {
		return preciseMoment
	}
	s = w.portico.Resolve(s)
	if s == nil {
		return object{}
	}
	if value, ok := samples()[name]; ok && s.Type != "array" && s.Type != "object" {
		if _, text := value.(string); text == (s.Type == "string") {
			return value
		}
	}
	switch s.Type {
	case "string":
		switch s.Format {
		case "date-time":
			return moment
		case "byte":
			return "YQ=="
		case "int-or-string":
			return 1
		}
		return "a"
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{w.sample(strings.TrimSuffix(name, "s"), s.Items)}
	}
	o := object{}
	if s.AdditionalProperties != nil {
		o["a"] = w.sample("", s.AdditionalProperties)
	}
	for _, required := range s.Required {
		o[required] = w.sample(required, s.Properties[required])
	}
	return o
}

// samples returns values for fields whose valid values depend on the name.
func samples() map[string]any {
	return map[string]any{
		"ip": "10.1.0.1", "clusterIP": "None", "podIP": "10.1.0.1", "hostIP": "10.1.0.1", "cidr": "10.1.0.0/16", "podCIDR": "10.1.0.0/24",
		"mountPath": "/a", "path": "/a", "host": "a.example.com", "hostname": "a", "externalName": "a.example.com", "image": "a",
		"protocol": "TCP", "operator": "Exists", "port": 80, "containerPort": 80, "nodePort": 30999,
		"restartPolicy": "Always", "dnsPolicy": "Default", "whenUnsatisfiable": "DoNotSchedule", "effect": "NoSchedule", "terminationMessagePolicy": "File",
		"imagePullPolicy": "Always", "accessMode": "ReadWriteOnce", "volumeMode": "Filesystem", "status": "True", "condition": "True",
		"divisor": "1", "sizeLimit": "1Gi", "storage": "1Gi", "fieldPath": "metadata.name", "schedule": "0 0 * * *",
		"defaultMode": 420, "mode": 420, "apiVersion": "v1", "kind": "Pod", "propagationPolicy": "Background",
	}
}

// variants returns the values to test for a field: one of its type, each enum value, empty
// values, values out of bounds and values of another type.
func (w *walker) variants(f field) []variant {
	name := f.path[len(f.path)-1]
	s := f.schema
	all := []variant{{"set", w.sample(name, f.raw)}, {"null", nil}}
	for _, value := range f.enum {
		if text, ok := value.(string); ok {
			all = append(all, variant{"enum-" + text, value})
		}
	}
	switch s.Type {
	case "string":
		all = append(all, variant{"empty", ""}, variant{"odd", "Not/Valid !"}, variant{"long", strings.Repeat("a", 300)}, variant{"number", 5})
		if s.Format == "int-or-string" {
			all = append(all, variant{"percent", "50%"}, variant{"text", "x"}, variant{"negative", -1})
		}
	case "integer", "number":
		all = append(all, variant{"zero", 0}, variant{"negative", -1}, variant{"large", int64(1) << 40}, variant{"text", "x"})
	case "boolean":
		all = append(all, variant{"false", false}, variant{"text", "x"})
	case "array":
		item := w.sample(strings.TrimSuffix(name, "s"), s.Items)
		all = append(all, variant{"empty", []any{}}, variant{"null-item", []any{nil}}, variant{"twice", []any{item, clone(item)}}, variant{"text", "x"})
	default:
		all = append(all, variant{"empty", object{}}, variant{"text", "x"})
		if s.AdditionalProperties != nil {
			all = append(all, variant{"odd-key", object{"Not/Valid !": w.sample("", s.AdditionalProperties)}}, variant{"null-value", object{"a": nil}})
			if values := w.portico.Resolve(s.AdditionalProperties); values != nil && values.Type == "string" {
				all = append(all, variant{"empty-value", object{"more": ""}}) // a merge patch adds the key
			}
		}
	}
	return all
}
