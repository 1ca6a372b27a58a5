package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/versions"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
)

// deviceCase is an object of the group of devices, and the beginnings of the lines that its
// causes must have; none of them if there are no lines.
type deviceCase struct{ resource, object, old, want string }

// deviceCauses returns the function that returns the causes of a write, each on a line. A
// resource with a colon names a version, one with a slash a subresource.
func deviceCauses(t *testing.T) func(deviceCase) string {
	t.Helper()
	types, engine := newEngineOf(t, release.V136)
	return func(c deviceCase) string { return c.causes(t, types, engine) }
}

func (c deviceCase) causes(t *testing.T, types *catalogue.Catalogue, engine *Engine) (causes string) {
	t.Helper()
	version, resource, ok := strings.Cut(c.resource, ":")
	if !ok {
		version, resource = "v1", c.resource
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	ty, ok := types.Lookup(engine.vocabulary.Group("resource."), version, resource)
	if !ok {
		t.Fatalf("no type %s", c.resource)
	}
	prepared := func(text string) map[string]any {
		object := decode(t, text)
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["name"], object["metadata"] = "a", metadata
		if ty.Namespaced {
			metadata["namespace"] = "b"
		}
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Fatal(err)
		}
		return object
	}
	between := versions.New(engine.vocabulary)
	validated := func(text string) map[string]any {
		object := prepared(text)
		object["apiVersion"], object["kind"] = ty.APIVersion(), ty.Kind
		converted, err := between.Convert(t.Context(), object, between.Validated(ty))
		if err != nil {
			t.Fatal(err)
		}
		return converted
	}
	change := Change{Type: between.Validated(ty), Subresource: subresource, Object: validated(c.object)}
	if c.old != "" {
		change.Old = validated(c.old)
	}
	var s *services.Status
	if errors.As(engine.ValidateChange(t.Context(), change), &s) {
		for _, cause := range s.Details.Causes {
			causes += cause.Field + ": " + cause.Message + "\n"
		}
	}
	return causes
}

func checkDevices(t *testing.T, cases map[string]deviceCase) {
	t.Helper()
	causes := deviceCauses(t)
	for name, c := range cases {
		if got := causes(c); c.want == "" && got != "" || c.want != "" && !sameLines(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestClaims checks the rules of claims, of their templates and of classes.
func TestClaims(t *testing.T) {
	claim := func(devices string) string { return `spec: {devices: {` + devices + `}}` }
	request := func(fields string) string {
		return claim(`requests: [{name: a, exactly: {deviceClassName: b, ` + fields + `}}]`)
	}
	selector := func(expression string) string {
		return request(fmt.Sprintf(`selectors: [{cel: {expression: %q}}]`, expression))
	}
	class := func(expression string) string {
		return fmt.Sprintf(`spec: {selectors: [{cel: {expression: %q}}]}`, expression)
	}
	const twoRequests = `requests: [{name: a, exactly: {deviceClassName: c}}, {name: b, firstAvailable: [{name: x, deviceClassName: c}]}]`
	const expression = "spec.devices.requests[0].exactly.selectors[0].cel.expression: "
	checkDevices(t, map[string]deviceCase{
		"claim":              {"resourceclaims", claim(twoRequests + `, constraints: [{requests: [a, b/x], matchAttribute: example.com/numa}], config: [{requests: [b], opaque: {driver: d.example.com, parameters: {a: b}}}]`), "", ""},
		"all and a count":    {"resourceclaims", request(`allocationMode: All, count: 2`), "", "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"},
		"less than none":     {"resourceclaims", request(`count: -1`), "", "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"},
		"less, v1beta1":      {"v1beta1:resourceclaims", claim(`requests: [{name: a, deviceClassName: b, count: -1}]`), "", "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"},
		"toleration":         {"resourceclaims", request(`tolerations: [{operator: Exists, key: a, value: b}]`), "", "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"b\": must be empty for operator `Exists`"},
		"toleration's value": {"resourceclaims", request(`tolerations: [{key: a, value: "b c"}]`), "", "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"b c\": a valid label"},
		"expression":         {"resourceclaims", selector(`device.attributes["gpu.example.com"].model == "a" && device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Gi"))`), "", ""},
		"several":            {"resourceclaims", selector(`device.allowMultipleAllocations && cel.bind(d, device.attributes["a"], d.b)`), "", ""},
		"no expression":      {"resourceclaims", request(`selectors: [{}]`), "", "spec.devices.requests[0].exactly.selectors[0].cel: Required value"},
		"number":             {"resourceclaims", selector(`1`), "", expression + `Invalid value: "1": must evaluate to bool or the unknown type, not int`},
		"syntax":             {"resourceclaims", selector(`device.`), "", expression + `Invalid value: "device.": compilation failed: ERROR`},
		"variable":           {"resourceclaims", selector(`pod.name == "a"`), "", expression + `Invalid value: "pod.name == \"a\"": compilation failed: ERROR`},
		"costly":             {"resourceclaims", selector(`device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a + b + c == d))))`), "", expression + "Forbidden: too complex, exceeds cost limit"},
		"long":               {"resourceclaims", selector(strings.Repeat("a", 10241)), "", expression + "Too long: may not be more than 10240 bytes"},
		"v1beta1, nothing":   {"v1beta1:resourceclaims", claim(`requests: [{name: a, allocationMode: All}, {name: b}]`), "", "spec.devices.requests[0].exactly.deviceClassName: Required value\nspec.devices.requests[1]: Required value: exactly one of `exactly` or `firstAvailable` is required"},
		"v1beta1, both":      {"v1beta1:resourceclaims", claim(`requests: [{name: a, deviceClassName: B_, firstAvailable: [{name: C_}, {name: C_}]}]`), "", "spec.devices.requests[0]: Invalid value: null: exactly one of"},
		"v1beta1, no class":  {"v1beta1:resourceclaims", claim(`requests: [{name: a, tolerations: [{operator: Exists}]}]`), "", "spec.devices.requests[0].exactly.allocationMode: Unsupported value: \"\": supported values: \"All\", \"ExactCount\"\nspec.devices.requests[0].exactly.deviceClassName: Required value"},
		"both":               {"resourceclaims", claim(`requests: [{name: a, exactly: {deviceClassName: B_}, firstAvailable: [{name: c, deviceClassName: d}, {name: c, deviceClassName: d}]}]`), "", "spec.devices.requests[0]: Invalid value: null: exactly one of"},
		"one twice":          {"resourceclaims", claim(`requests: [{name: a, firstAvailable: [{name: c, deviceClassName: d}, {name: c, deviceClassName: d}]}]`), "", "spec.devices.requests[0].firstAvailable[1]: Duplicate value: \"c\""},
		"long attribute":     {"resourceclaims", claim(twoRequests + `, constraints: [{matchAttribute: example.com/` + strings.Repeat("a", 33) + `}]`), "", "spec.devices.constraints[0].matchAttribute: Too long: may not be more than 32 bytes"},
		"two attributes":     {"resourceclaims", claim(twoRequests + `, constraints: [{matchAttribute: a.b/c, distinctAttribute: "1"}]`), "", ""},
		"empty selector":     {"v1beta2:devicetaintrules", `spec: {deviceSelector: {driver: "", pool: ""}, taint: {key: a, effect: None}}`, "", "spec.deviceSelector.driver: Required value\nspec.deviceSelector.pool: Required value"},
		"long selector":      {"v1beta2:devicetaintrules", `spec: {deviceSelector: {driver: ` + strings.Repeat("a", 64) + `, pool: ` + strings.Repeat("a/", 127) + `a}, taint: {key: a, effect: None}}`, "", "spec.deviceSelector.driver: Too long: may not be more than 63 bytes\nspec.deviceSelector.pool: Too long: may not be more than 253 bytes"},
		"v1beta1 expression": {"v1beta1:resourceclaims", claim(`requests: [{name: a, deviceClassName: b, selectors: [{cel: {expression: "1"}}]}]`), "", "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value"},
		"alternative":        {"resourceclaims", claim(`requests: [{name: a, firstAvailable: [{name: b, deviceClassName: c, selectors: [{cel: {expression: "1"}}]}]}]`), "", "spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression: Invalid value"},
		"nameless":           {"resourceclaims", claim(`requests: [{name: a, firstAvailable: [{name: "", deviceClassName: c}]}]`), "", "spec.devices.requests[0].firstAvailable[0].name: Invalid value: \"\": a lowercase RFC 1123 label"},
		"unknown request":    {"resourceclaims", claim(twoRequests + `, constraints: [{requests: [c], matchAttribute: example.com/numa}]`), "", "spec.devices.constraints[0].requests[0]: Invalid value: \"c\": must be the name of a request"},
		"unknown below":      {"resourceclaims", claim(twoRequests + `, config: [{requests: [b/z, a/x, a/b/c], opaque: {driver: d, parameters: {}}}]`), "", "spec.devices.config[0].requests[0]: Invalid value: \"b/z\"\nspec.devices.config[0].requests[1]: Invalid value: \"a/x\"\nspec.devices.config[0].requests[2]: Invalid value: \"a/b/c\""},
		"no kind":            {"resourceclaims", claim(`requests: [{name: a}]`), "", "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"},
		"two kinds":          {"resourceclaims", claim(`requests: [{name: a, exactly: {}, firstAvailable: [{}]}]`), "", "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"},
		"changed":            {"resourceclaims", claim(`requests: [{name: ""}]`), claim(`requests: [{name: a, exactly: {deviceClassName: b}}]`), "spec: Invalid value: "},
		"zero":               {"resourceclaims", request(`count: 0`), "", ""},
		"twice":              {"resourceclaims", claim(twoRequests + `, constraints: [{requests: [a, a], matchAttribute: example.com/numa}]`), "", "spec.devices.constraints[0].requests[1]: Duplicate value: \"a\""},
		"no attribute":       {"resourceclaims", claim(twoRequests + `, constraints: [{}]`), "", "spec.devices.constraints[0]: Required value"},
		"no domain":          {"resourceclaims", claim(twoRequests + `, constraints: [{matchAttribute: numa}]`), "", "spec.devices.constraints[0].matchAttribute: Invalid value: \"numa\": a fully qualified name must be a domain and a name separated by a slash"},
		"wrong attribute":    {"resourceclaims", claim(twoRequests + `, constraints: [{distinctAttribute: example.com/1-a}]`), "", "spec.devices.constraints[0].distinctAttribute: Invalid value: \"1-a\": a valid C identifier"},
		"no parameters":      {"resourceclaims", claim(twoRequests + `, config: [{opaque: {driver: d}}]`), "", "spec.devices.config[0].opaque.parameters: Required value"},
		"large parameters":   {"resourceclaims", claim(twoRequests + `, config: [{opaque: {driver: d, parameters: {a: ` + strings.Repeat("b", 10241) + `}}}]`), "", "spec.devices.config[0].opaque.parameters: Too long"},
		"no driver":          {"resourceclaims", claim(twoRequests + `, config: [{}]`), "", "spec.devices.config[0].opaque: Required value"},
		"changed claim":      {"resourceclaims", request(`count: 2`), request(`count: 1`), "spec: Invalid value"},
		"stored claim":       {"resourceclaims", selector(`1`), selector(`1`), ""}, // is not compiled again
		"template":           {"resourceclaimtemplates", `spec: {` + selector(`1`) + `}`, "", "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value"},
		"class":              {"deviceclasses", class(`device.driver == "a"`), "", ""},
		"class of numbers":   {"deviceclasses", class(`1`), "", "spec.selectors[0].cel.expression: Invalid value"},
		"stored class":       {"deviceclasses", class(`1`), class(`1`), ""},
		"changed class":      {"deviceclasses", class(`2`), class(`1`), "spec.selectors[0].cel.expression: Invalid value"},
		"extended resource":  {"deviceclasses", `spec: {extendedResourceName: example.com/gpu}`, "", ""},
		"native resource":    {"deviceclasses", `spec: {extendedResourceName: cpu}`, "", "spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource name"},
		"own resource":       {"deviceclasses", `spec: {extendedResourceName: platform.io/gpu}`, "", "spec.extendedResourceName: Invalid value"},
	})
}

// TestExpressionsAreBounded checks that a claim cannot have more expressions compiled than a
// request may take time for.
func TestExpressionsAreBounded(t *testing.T) {
	var requests []string
	for i := range 32 {
		var selectors []string
		for j := range 32 {
			selectors = append(selectors, fmt.Sprintf(`{cel: {expression: "%d == %d"}}`, i, j))
		}
		requests = append(requests, fmt.Sprintf(`{name: r%d, exactly: {deviceClassName: a, selectors: [%s]}}`, i, strings.Join(selectors, ",")))
	}
	got := deviceCauses(t)(deviceCase{resource: "resourceclaims", object: `spec: {devices: {requests: [` + strings.Join(requests, ",") + `]}}`})
	if !strings.Contains(got, "must not have more than 1000 different expressions") {
		t.Errorf("got\n%s", got)
	}
}

// TestSlices checks the rules of slices.
func TestSlices(t *testing.T) {
	slice := func(fields string) string {
		return `spec: {driver: d.example.com, pool: {name: p, resourceSliceCount: 1}, ` + fields + `}`
	}
	device := func(fields string) string { return slice(`nodeName: n1, devices: [{name: a, ` + fields + `}]`) }
	shared := func(policy string) string {
		return device(`allowMultipleAllocations: true, capacity: {memory: {value: 10, requestPolicy: {` + policy + `}}}`)
	}
	many := func(n int, fields string) (list string) {
		for i := range n {
			list += fmt.Sprintf("{name: d%d%s},", i, fields)
		}
		return slice(`nodeName: n1, devices: [` + list + `]`)
	}
	attributes := func(n int) (list string) {
		for i := range n {
			list += fmt.Sprintf("a%d: {int: 1},", i)
		}
		return list
	}
	const policy = "spec.devices[0].capacity[memory].requestPolicy"
	checkDevices(t, map[string]deviceCase{
		"slice":             {"resourceslices", device(`attributes: {model: {string: a}, example.com/version: {version: 1.2.3-rc.1}}, capacity: {memory: {value: 1Gi}}`), "", ""},
		"no nodes":          {"resourceslices", slice(`devices: []`), "", "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"},
		"other nodes":       {"resourceslices", slice(`nodeName: n1, allNodes: true`), "", "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of"},
		"not all nodes":     {"resourceslices", slice(`nodeName: n1, allNodes: false`), "", "spec.allNodes: Invalid value: false: must be either unset or set to true"},
		"empty name":        {"resourceslices", slice(`nodeName: "", allNodes: true`), "", "spec.nodeName: Invalid value: \"\": must be either unset or set to a non-empty string"},
		"two terms":         {"resourceslices", slice(`nodeSelector: {nodeSelectorTerms: [{}, {}]}`), "", "spec.nodeSelector.nodeSelectorTerms: Invalid value"},
		"pool":              {"resourceslices", `spec: {driver: d, nodeName: n1, pool: {name: a//b, generation: -1}}`, "", "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero\nspec.pool.name: Invalid value: \"\": a lowercase RFC 1123 subdomain\nspec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"},
		"another pool":      {"resourceslices", `spec: {driver: d, nodeName: n1, pool: {name: a, resourceSliceCount: 1}}`, `spec: {driver: d, nodeName: n1, pool: {name: b, resourceSliceCount: 1}}`, "spec.pool.name: Invalid value: \"a\": field is immutable"},
		"another node":      {"resourceslices", slice(`nodeName: n1`), slice(`nodeName: n2`), "spec.nodeName: Invalid value: \"n1\": field is immutable"},
		"long driver":       {"resourceslices", `spec: {driver: ` + strings.Repeat("a", 64) + `, nodeName: n1, pool: {name: a, resourceSliceCount: 1}}`, "", "spec.driver: Too long: may not be more than 63 bytes"},
		"128 devices":       {"resourceslices", many(128, ""), "", ""},
		"129 devices":       {"resourceslices", many(129, ""), "", "spec.devices: Too many: 129: must have at most 128 items"},
		"65 with taints":    {"resourceslices", many(65, ", taints: [{key: a, effect: None}]"), "", "spec.devices: Too many: 65: must have at most 64 items"},
		"counters, devices": {"resourceslices", slice(`nodeName: n1, devices: [{name: a}], sharedCounters: [{name: a, counters: {b: {value: 1}}}]`), "", "spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed"},
		"no counters":       {"resourceslices", slice(`nodeName: n1, sharedCounters: [{name: a}]`), "", "spec.sharedCounters[0].counters: Required value"},
		"counter":           {"resourceslices", slice(`nodeName: n1, sharedCounters: [{name: a, counters: {"B_": {value: 1}}}]`), "", "spec.sharedCounters[0].counters: Invalid value: \"B_\": a lowercase RFC 1123 label"},
		"consumed":          {"resourceslices", device(`consumesCounters: [{counterSet: a, counters: {b: {value: 1}}}, {counterSet: a}]`), "", "spec.devices[0].consumesCounters[1].counterSet: Duplicate value: \"a\"\nspec.devices[0].consumesCounters[1].counters: Required value"},
		"taint":             {"resourceslices", device(`taints: [{key: a, value: "b c", effect: Now}]`), "", "spec.devices[0].taints[0].effect: Unsupported value: \"Now\"\nspec.devices[0].taints[0].value: Invalid value: \"b c\""},
		"33 attributes":     {"resourceslices", device(`attributes: {` + attributes(33) + `}`), "", "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32"},
		"attribute's name":  {"resourceslices", device(`attributes: {1a: {int: 1}, /b: {int: 1}, example.com/: {int: 1}}`), "", "spec.devices[0].attributes: Invalid value: \"\": the domain must not be empty\nspec.devices[0].attributes: Invalid value: \"\": the name must not be empty\nspec.devices[0].attributes: Invalid value: \"1a\": a valid C identifier"},
		"no value":          {"resourceslices", device(`attributes: {a: {}}`), "", "spec.devices[0].attributes[a]: Invalid value: \"\": exactly one value must be specified"},
		"twice":             {"resourceslices", slice(`nodeName: n1, devices: [{name: a}, {name: a}]`), "", "spec.devices[1]: Duplicate value: \"a\""},
		"nameless":          {"resourceslices", slice(`nodeName: n1, devices: [{}]`), "", "spec.devices[0].name: Invalid value: \"\": a lowercase RFC 1123 label"},
		"no amount":         {"resourceslices", device(`capacity: {memory: {}}, consumesCounters: [{counterSet: a, counters: {b: {}}}]`), "", ""},
		"two values":        {"resourceslices", device(`attributes: {a: {int: 1, bool: false}}`), "", "spec.devices[0].attributes[a]: Invalid value: {\"bool\":false,\"int\":1}: exactly one value"},
		"version":           {"resourceslices", device(`attributes: {a: {version: v1}}`), "", "spec.devices[0].attributes[a].version: Invalid value: \"v1\": must be a string compatible with semver.org spec 2.0.0"},
		"long value":        {"resourceslices", device(`attributes: {a: {string: ` + strings.Repeat("b", 65) + `}}`), "", "spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes"},
		"v1beta1":           {"v1beta1:resourceslices", slice(`nodeName: n1, devices: [{name: a, basic: {attributes: {a: {int: 1, bool: true}}, taints: [{key: a}]}}]`), "", "spec.devices[0].attributes[a]: Invalid value: {\"bool\"\nspec.devices[0].taints[0].effect: Required value"},
		"own nodes":         {"resourceslices", slice(`perDeviceNodeSelection: true, devices: [{name: a, nodeName: n1}]`), "", ""},
		"no own nodes":      {"resourceslices", slice(`perDeviceNodeSelection: true, devices: [{name: a}]`), "", "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"},
		"nodes of a device": {"resourceslices", device(`nodeName: n1`), "", "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if"},
		"bindings":          {"resourceslices", device(`bindingConditions: [a, a], bindingFailureConditions: [a]`), "", "spec.devices[0].bindingConditions[1]: Duplicate value: \"a\"\nspec.devices[0].bindingFailureConditions[0]: Invalid value: \"a\": bindingFailureConditions must not overlap with bindingConditions"},
		"half a binding":    {"resourceslices", device(`bindingConditions: [a]`), "", "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions"},
		"policy":            {"resourceslices", shared(`default: 2, validRange: {min: 2, max: 8, step: 2}`), "", ""},
		"policy of one":     {"resourceslices", device(`capacity: {memory: {value: 10, requestPolicy: {default: 1}}}`), "", policy + ": Forbidden: allowMultipleAllocations must be true"},
		"two policies":      {"resourceslices", shared(`default: 2, validValues: [2], validRange: {min: 1}`), "", policy + ": Forbidden: exactly one policy can be specified"},
		"no default":        {"resourceslices", shared(`validValues: [2]`), "", policy + ".default: Required value: required when validValues is defined"},
		"values":            {"resourceslices", shared(`default: 3, validValues: [4, 2, 20]`), "", policy + ".validValues: Invalid value: \"3\": default value is not valid\n" + policy + ".validValues[1]: Invalid value: \"2\": values must be sorted in ascending order\n" + policy + ".validValues[2]: Invalid value: \"20\": option is larger than capacity value: 10"},
		"range":             {"resourceslices", shared(`default: 1, validRange: {min: 2, max: 20}`), "", policy + ".validRange.max: Invalid value: \"20\": max is larger than capacity value: 10\n" + policy + ".validRange.min: Invalid value: \"1\": default is less than min: 2"},
		"steps":             {"resourceslices", shared(`default: 3, validRange: {min: 2, step: 2}`), "", policy + ".validRange.step: Invalid value: \"3\": value is not a multiple of a given step (2) from (2)"},
		"step of nothing":   {"resourceslices", shared(`default: 2, validRange: {min: 2, step: 0}`), "", policy + ".validRange.step: Invalid value: \"0\": must be greater than zero"},
	})
}

// TestClaimStatus checks the rules of the status of claims.
func TestClaimStatus(t *testing.T) {
	const claim = `spec: {devices: {requests: [{name: r, exactly: {deviceClassName: b}}]}}`
	const result = `request: r, driver: d.example.com, pool: p, device: x`
	const one = `allocation: {devices: {results: [{` + result + `}]}}`
	const user = `reservedFor: [{resource: pods, name: a, uid: "1"}]`
	const condition = `{type: Ready, status: "True", reason: A, lastTransitionTime: "2026-01-02T03:04:05Z"}`
	with := func(status string) string { return `{` + claim + `, status: {` + status + `}}` }
	reported := func(fields string) string {
		return with(one + `, devices: [{driver: d.example.com, pool: p, device: x, ` + fields + `}]`)
	}
	deleted := `metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}, `
	gone := func(status string) string { return `{` + deleted + claim + `, status: {` + status + `}}` }
	checkDevices(t, map[string]deviceCase{
		"allocated":         {"resourceclaims/status", with(one + `, ` + user), with(``), ""},
		"released":          {"resourceclaims/status", with(``), with(one), ""},
		"allocated again":   {"resourceclaims/status", with(`allocation: {devices: {results: [{request: r, driver: d.example.com, pool: p, device: z}]}}`), with(one), "status.allocation: Invalid value"},
		"unknown request":   {"resourceclaims/status", with(`allocation: {devices: {results: [{request: s, driver: d.example.com, pool: p, device: x}]}}`), with(``), "status.allocation.devices.results[0].request: Invalid value: \"s\": must be the name of a request"},
		"bad device":        {"resourceclaims/status", with(`allocation: {devices: {results: [{request: r, driver: "", pool: "", device: X_, shareID: abc}]}}`), with(``), "status.allocation.devices.results[0].device: Invalid value: \"X_\"\nstatus.allocation.devices.results[0].driver: Required value\nstatus.allocation.devices.results[0].pool: Required value\nstatus.allocation.devices.results[0].shareID: Invalid value: \"abc\""},
		"many results":      {"resourceclaims/status", with(`allocation: {devices: {results: [` + strings.Repeat(`{`+result+`},`, 33) + `]}}`), with(``), "status.allocation.devices.results: Too many: 33: must have at most 32 items"},
		"configured":        {"resourceclaims/status", with(`allocation: {devices: {results: [{` + result + `}], config: [{source: Nowhere, requests: [s]}]}}`), with(``), "status.allocation.devices.config[0].opaque: Required value\nstatus.allocation.devices.config[0].requests[0]: Invalid value\nstatus.allocation.devices.config[0].source: Unsupported value: \"Nowhere\""},
		"config twice":      {"resourceclaims/status", with(`allocation: {devices: {results: [{` + result + `}], config: [{source: FromClaim, requests: [r, r], opaque: {driver: d}}]}}`), with(``), "status.allocation.devices.config[0].opaque.parameters: Required value\nstatus.allocation.devices.config[0].requests[1]: Duplicate value: \"r\""},
		"user twice":        {"resourceclaims/status", with(one + `, reservedFor: [{resource: pods, name: a, uid: "1"}, {resource: pods, name: b, uid: "1"}]`), with(one), "status.reservedFor[1]: Duplicate value: \"1\""},
		"user of nothing":   {"resourceclaims/status", with(user), with(``), "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"},
		"nameless user":     {"resourceclaims/status", with(one + `, reservedFor: [{resource: pods, uid: "1", name: ""}]`), with(one), "status.reservedFor[0].name: Required value"},
		"user of a deleted": {"resourceclaims/status", gone(one + `, ` + user), gone(one), "status.reservedFor: Forbidden: new entries may not be added"},
		"kept user":         {"resourceclaims/status", gone(one + `, ` + user), gone(one + `, ` + user), ""},
		"report":            {"resourceclaims/status", reported(`conditions: [` + condition + `], data: {a: b}, networkData: {ips: [10.1.2.3/24, "2001:db8::1/64"]}`), with(one), ""},
		"other device":      {"resourceclaims/status", with(one + `, devices: [{driver: d.example.com, pool: p, device: z}]`), with(one), "status.devices[0]: Invalid value: \"d.example.com/p/z\": must be an allocated device in the claim"},
		"conditions":        {"resourceclaims/status", reported(`conditions: [{type: "a b", status: Perhaps, reason: "1", observedGeneration: -1}]`), with(one), "status.devices[0].conditions[0].lastTransitionTime: Required value\nstatus.devices[0].conditions[0].observedGeneration: Invalid value: -1\nstatus.devices[0].conditions[0].reason: Invalid value: \"1\": a condition reason\nstatus.devices[0].conditions[0].status: Unsupported value: \"Perhaps\"\nstatus.devices[0].conditions[0].type: Invalid value: \"a b\""},
		"9 conditions":      {"resourceclaims/status", reported(`conditions: [` + strings.Repeat(condition+",", 9) + `]`), with(one), "status.devices[0].conditions: Too many: 9: must have at most 8 items\nstatus.devices[0].conditions[1].type: Duplicate value: \"Ready\""},
		"data":              {"resourceclaims/status", reported(`data: {a: ` + strings.Repeat("b", 10241) + `}`), with(one), "status.devices[0].data: Too long"},
		"addresses":         {"resourceclaims/status", reported(`networkData: {interfaceName: ` + strings.Repeat("e", 257) + `, ips: [10.1.2.3, 10.1.2.3/024, "2001:DB8::1/64", "::1/128", "::1/128"]}`), with(one), "status.devices[0].networkData.interfaceName: Too long\nstatus.devices[0].networkData.ips[0]: Invalid value: \"10.1.2.3\"\nstatus.devices[0].networkData.ips[2]: Invalid value: \"2001:DB8::1/64\": must be in canonical form (\"2001:db8::1/64\")\nstatus.devices[0].networkData.ips[4]: Duplicate value"},
	})
}
