// Package quota defines what a ResourceQuota limits and what an object counts for.
// Admission charges new objects with it and the quota controller recounts with it, so
// both compute the same amounts. It decides amounts and scopes; it reads nothing,
// writes nothing and refuses nothing. It serves "Admission plugins" of the
// specification.
package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/services/quantity"
	names "github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Amounts are quantities by name, such as "cpu", "requests.storage" or "count/secrets".
type Amounts map[string]resource.Quantity

// UnmarshalJSON parses amounts like package quantity.
func (a *Amounts) UnmarshalJSON(raw []byte) error {
	all, err := quantity.ParseMap(raw)
	*a = all
	return err
}

// Plus returns the sums.
func (a Amounts) Plus(b Amounts) Amounts {
	sum := make(Amounts, max(len(a), len(b)))
	for name, q := range a {
		sum[name] = q.DeepCopy()
	}
	sum.add(b)
	return sum
}

// add adds to the amounts, in place.
func (a Amounts) add(b Amounts) {
	for name, q := range b {
		s := a[name].DeepCopy()
		s.Add(q)
		a[name] = s
	}
}

// Beyond returns the amounts by which a exceeds b.
func (a Amounts) Beyond(b Amounts) Amounts {
	more := Amounts{}
	for name, q := range a {
		d := q.DeepCopy()
		if d.Sub(b[name]); d.Sign() > 0 {
			more[name] = d
		}
	}
	return more
}

// Of returns the amounts whose names are in b.
func (a Amounts) Of(b Amounts) Amounts {
	shared := maps.Clone(a)
	maps.DeleteFunc(shared, func(name string, _ resource.Quantity) bool {
		_, ok := b[name]
		return !ok
	})
	return shared
}

// Equal reports whether the amounts are equal, independent of their notation.
func (a Amounts) Equal(b Amounts) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// String lists the amounts, sorted by name.
func (a Amounts) String() string {
	parts := make([]string, 0, len(a))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		q := a[name]
		parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
	}
	return strings.Join(parts, ",")
}

// Quota is a stored ResourceQuota.
type Quota struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Hard          Amounts  `json:"hard"`
		Scopes        []string `json:"scopes"`
		ScopeSelector *struct {
			MatchExpressions []Scope `json:"matchExpressions"`
		} `json:"scopeSelector"`
	} `json:"spec"`
	Status Status `json:"status"`
}

// Status holds the enforced limits and their usage.
type Status struct {
	Hard Amounts `json:"hard,omitempty"`
	Used Amounts `json:"used,omitempty"`
}

// Scope is one condition for objects to count in a quota.
type Scope struct {
	Name     string   `json:"scopeName"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// Scopes returns all conditions of the quota, including those of the short form.
func (q *Quota) Scopes() []Scope {
	var all []Scope
	for _, name := range q.Spec.Scopes {
		all = append(all, Scope{Name: name, Operator: "Exists"})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return all
}

// Counter computes what objects count for. Its zero value is not usable.
type Counter struct {
	vocabulary vocabulary.Vocabulary
	// perClass is the suffix of amounts per storage class, perDeviceClass that of amounts
	// per class of devices.
	perClass, perDeviceClass string
	requested                bool // only what pods request counts, not what they have
}

// NewCounter returns a counter with the names of a vocabulary.
func NewCounter(v vocabulary.Vocabulary) Counter {
	return Counter{vocabulary: v, perClass: ".storageclass." + v.Group("storage.") + "/", perDeviceClass: ".deviceclass." + v.Group("resource.") + "/devices"}
}

// Requested returns a counter of what the specs of pods request, whatever their containers have.
func (c Counter) Requested() Counter {
	c.requested = true
	return c
}

// The types that count for more than their number.
var (
	pods     = names.GroupResource{Resource: "pods"}
	services = names.GroupResource{Resource: "services"}
	claims   = names.GroupResource{Resource: "persistentvolumeclaims"}
)

// Weighs reports whether objects of a type count for more than their number, so that
// their content is needed.
func Weighs(gr names.GroupResource) bool {
	return gr == pods || gr == services || gr == claims || ofDevices(gr)
}

// Counted returns the type whose objects use an amount; false if there is none.
func (c Counter) Counted(name string) (names.GroupResource, bool) {
	if counted, ok := strings.CutPrefix(name, "count/"); ok {
		of, group, _ := strings.Cut(counted, ".")
		return names.GroupResource{Group: group, Resource: of}, of != ""
	}
	switch name {
	case "services", "services.loadbalancers", "services.nodeports":
		return services, true
	case "persistentvolumeclaims", "requests.storage":
		return claims, true
	case "replicationcontrollers", "resourcequotas", "secrets", "configmaps":
		return names.GroupResource{Resource: name}, true
	}
	if strings.Contains(name, c.perClass) {
		return claims, true
	}
	if strings.HasSuffix(name, c.perDeviceClass) {
		return names.GroupResource{Group: c.vocabulary.Group("resource."), Resource: deviceClaims}, true
	}
	return pods, name == "pods" || c.computed(name)
}

// computed reports whether an amount is a compute resource of pods.
func (c Counter) computed(name string) bool {
	requested := strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.")
	switch {
	case requested == "cpu", requested == "memory", requested == "ephemeral-storage", strings.HasPrefix(requested, "hugepages-"):
		return true
	}
	return strings.HasPrefix(name, "requests.") && c.extended(requested)
}

// extended reports whether a container resource is an extended resource.
func (c Counter) extended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, c.vocabulary.Domain+"/") && !strings.HasPrefix(name, "requests.")
}

// number returns the amounts of one object of a type as such, under all names.
func number(gr names.GroupResource) Amounts {
	one := Amounts{"count/" + gr.String(): *resource.NewQuantity(1, resource.DecimalSI)}
	switch gr.String() {
	case "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "services", "persistentvolumeclaims":
		one[gr.Resource] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return one
}
