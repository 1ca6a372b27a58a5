package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// config is the file of prices and budgets. Budgets and costs are per hour.
type config struct {
	// Prices are for one core, one GiB of memory or storage, or one unit of any other
	// resource.
	Prices map[corev1.ResourceName]float64 `json:"prices"`
	// Budget is that of namespaces that are not in Namespaces; nil is no limit.
	Budget     *float64           `json:"budget"`
	Namespaces map[string]float64 `json:"namespaces"`
	// Exempt are namespaces without a limit.
	Exempt []string `json:"exempt"`
}

// parseConfig reads the file.
func parseConfig(content [][]byte) (config, error) {
	var c config
	if err := yaml.UnmarshalStrict(content[0], &c); err != nil {
		return c, err
	}
	check := func(field string, value float64) error {
		if value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("%s: %g is not a price or budget", field, value)
		}
		return nil
	}
	if len(c.Prices) == 0 {
		return c, errors.New("prices: empty, so that nothing costs anything")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Prices)) {
		if err := check(fmt.Sprintf("prices.%s", name), c.Prices[name]); err != nil {
			return c, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Namespaces)) {
		if err := check("namespaces."+name, c.Namespaces[name]); err != nil {
			return c, err
		}
	}
	if c.Budget != nil {
		return c, check("budget", *c.Budget)
	}
	return c, nil
}

// budget returns the budget of a namespace; limited is false if it has none.
func (c config) budget(namespace string) (budget float64, limited bool) {
	if slices.Contains(c.Exempt, namespace) {
		return 0, false
	}
	if own, ok := c.Namespaces[namespace]; ok {
		return own, true
	}
	if c.Budget == nil {
		return 0, false
	}
	return *c.Budget, true
}

// cost returns the price of amounts for one hour.
func (c config) cost(a amounts) float64 {
	total := 0.0
	for name, amount := range a {
		total += c.Prices[name] * float64(amount) / float64(unit(name))
	}
	return total
}

// unit returns how many of an amount the price is for.
func unit(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return 1000
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return 1 << 30
	}
	return 1
}

// money returns an amount of money with four digits after the point.
func money(amount float64) string { return fmt.Sprintf("%.4f", amount) }
