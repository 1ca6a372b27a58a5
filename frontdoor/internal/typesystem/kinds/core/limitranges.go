package core

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
)

// limitsOfType checks that min, defaultRequest, default and max ascend, and that limits for
// pods have no defaults.
func limitsOfType(c *rules.Check, m, _ map[string]any, at *field.Path) {
	kind := rules.Text(m, "type")
	if kind == "Pod" {
		for _, name := range [...]string{"default", "defaultRequest"} {
			if len(rules.Object(m, name)) > 0 {
				c.Forbidden(at.Field(name), "may not be specified when `type` is 'Pod'")
			}
		}
	}
	least, most := rules.Object(m, "min"), rules.Object(m, "max")
	if kind == "PersistentVolumeClaim" && least["storage"] == nil && most["storage"] == nil {
		c.Required(at.Field("limits"), "either minimum or maximum storage value is required, but neither was provided")
	}
	limitNames(c, m, at)
	ascending := [...]string{"min", "defaultRequest", "default", "max"}
	for i, low := range ascending {
		for _, high := range ascending[i+1:] {
			below(c, m, [2]string{low, high}, at)
		}
	}
	ratios(c, m, at)
}

// limitNames checks the type, the names of resources, and that resources that cannot be
// overcommitted have the same default request and limit.
func limitNames(c *rules.Check, m map[string]any, at *field.Path) {
	kind := rules.Text(m, "type")
	pods := kind == "Pod" || kind == "Container"
	problems := validation.IsQualifiedName(kind)
	if len(problems) == 0 && !pods && kind != "PersistentVolumeClaim" && !strings.Contains(kind, "/") {
		problems = []string{"must be a standard limit type or fully qualified"}
	}
	for _, problem := range problems {
		c.Invalid(at.Field("type"), kind, problem)
	}
	for _, bound := range [...]string{"min", "max", "default", "defaultRequest", "maxLimitRequestRatio"} {
		for name := range rules.Object(m, bound) {
			if pods {
				resources.ContainerName(c, name, at.Field(bound).Entry(name))
			} else {
				anyResource(c, name, at.Field(bound).Entry(name))
			}
		}
	}
	limits := rules.Object(m, "default")
	for name, value := range rules.Object(m, "defaultRequest") {
		limit, given := limits[name]
		shared := resources.Native[name] || !isCounted(c, name) && strings.Contains(name, "/")
		if given && !shared && !rules.Same(limit, value) {
			c.Invalid(at.Field("defaultRequest").Entry(name), value, fmt.Sprintf("default value %v must equal to defaultRequest value %v in %s", limit, value, name))
		}
	}
}

// anyResource checks the name of a resource of other objects than pods and containers.
func anyResource(c *rules.Check, name string, at *field.Path) {
	problems := validation.IsQualifiedName(name)
	if len(problems) == 0 && !strings.Contains(name, "/") && !standardOfQuota(name) && name != "storage" {
		problems = []string{"must be a standard resource type or fully qualified"}
	}
	for _, problem := range problems {
		c.Invalid(at, name, problem)
	}
}

// below checks that no bound of the first kind exceeds one of the second kind.
func below(c *rules.Check, m map[string]any, kinds [2]string, at *field.Path) {
	low, high := kinds[0], kinds[1]
	upper, blamed := rules.Object(m, high), low
	if low == "min" && high != "max" {
		blamed = high // the default is reported, not the range
	}
	shown := blamed // whose value the error has, as in Kubernetes
	switch {
	case low == "min" && high == "default":
		shown = low
	case low == "default":
		shown = high
	}
	for name, value := range rules.Object(m, low) {
		bound, bounded := upper[name]
		if a, b := rules.Quantity(value), rules.Quantity(bound); bounded && a.Cmp(b) > 0 {
			upTo := boundNames[high]
			if low == "defaultRequest" && high == "default" {
				upTo = "default limit"
			}
			c.Invalid(at.Field(blamed).Entry(name), rules.Object(m, shown)[name], fmt.Sprintf("%s value %v is greater than %s value %v", boundNames[low], value, upTo, bound))
		}
	}
}

// boundNames are the names of bounds in messages.
var boundNames = map[string]string{"min": "min", "defaultRequest": "default request", "default": "default", "max": "max"}

// ratios checks that maxLimitRequestRatio is at least 1 and at most max/min.
func ratios(c *rules.Check, m map[string]any, at *field.Path) {
	least, most := rules.Object(m, "min"), rules.Object(m, "max")
	for name, value := range rules.Object(m, "maxLimitRequestRatio") {
		where, ratio := at.Field("maxLimitRequestRatio").Entry(name), rules.Quantity(value)
		if ratio.MilliValue() < 1000 {
			c.Invalid(where, value, "ratio "+ratio.String()+" is less than 1")
		}
		low, high := rules.Quantity(least[name]), rules.Quantity(most[name])
		limit := high.AsApproximateFloat64() / low.AsApproximateFloat64()
		if low.Sign() > 0 && high.Sign() > 0 && ratio.AsApproximateFloat64() > limit {
			c.Invalid(where, value, fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), limit))
		}
	}
}

// limitDefaults sets the missing defaults of limits for containers: default from max, and
// defaultRequest from default and then min.
func limitDefaults(m map[string]any, _ vocabulary.Vocabulary) {
	if m["type"] != "Container" {
		return
	}
	for _, step := range [...][2]string{{"default", "max"}, {"defaultRequest", "default"}, {"defaultRequest", "min"}} {
		if from := rules.Object(m, step[1]); len(from) > 0 {
			rules.Complete(m, map[string]any{step[0]: from})
		}
	}
}

// nameLimitRange generates the name of a LimitRange without one: the only kind whose name
// is optional.
func nameLimitRange(_ kinds.Write, obj, _ map[string]any) {
	if meta := tree.Object(obj, "metadata"); rules.Text(meta, "name") == "" {
		meta["name"] = string(uuid.NewUUID())
	}
}
