// Package nodeselector keeps the pods of a namespace on the nodes that an annotation of
// the namespace selects, or the configuration when there is no annotation. It serves
// PodNodeSelector under "Admission plugins" of the specification.
package nodeselector

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/admission/internal/config"
	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/review"
)

// clusterDefault is the key of the selector of namespaces without the annotation.
const clusterDefault = "clusterDefaultNodeSelector"

// Config is the configuration of the plugin; its zero value configures nothing.
type Config struct {
	// Default is the selector of namespaces without the annotation.
	Default labels.Set
	// Whitelists are, by namespace, all that the pods of a namespace may select.
	Whitelists map[string]labels.Set
}

// Parse reads the configuration of the plugin: selectors by namespace, and the default.
func Parse(d config.Document) (Config, error) {
	var read struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	if err := d.Decode(&read); err != nil {
		return Config{}, err
	}
	c := Config{Whitelists: map[string]labels.Set{}}
	for _, name := range slices.Sorted(maps.Keys(read.Selectors)) {
		selector, err := labels.ConvertSelectorToLabelsMap(read.Selectors[name])
		if err != nil {
			return c, d.Invalid(fmt.Sprintf("podNodeSelectorPluginConfig[%s]", name), "%v", err)
		}
		if name == clusterDefault {
			c.Default = selector
		} else {
			c.Whitelists[name] = selector
		}
	}
	return c, nil
}

// Plugin merges the selector of the namespace into those of new pods.
type Plugin struct {
	Namespaces namespaces.Known
	Config     Config
}

// Mutate refuses with Forbidden (403) what contradicts the selector of the namespace.
func (p Plugin) Mutate(ctx context.Context, r *review.Review) error {
	own, wanted, err := p.selectors(ctx, r)
	if err != nil || len(wanted) == 0 {
		return err
	}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	spec, _ := pod["spec"].(map[string]any)
	merged := map[string]any{}
	for key, value := range labels.Merge(own, wanted) {
		merged[key] = value
	}
	spec["nodeSelector"] = merged
	r.Changed()
	return nil
}

// Validate refuses pods that have been given another selector since.
func (p Plugin) Validate(ctx context.Context, r *review.Review) error {
	_, _, err := p.selectors(ctx, r)
	return err
}

// selectors returns those of a new pod and of its namespace; they must not contradict
// each other, and the configuration has to allow the result.
func (p Plugin) selectors(ctx context.Context, r *review.Review) (own, wanted labels.Set, err error) {
	_, spec, err := r.NewPod()
	if err != nil || spec == nil {
		return nil, nil, err
	}
	if wanted, err = p.wanted(ctx, r); err != nil {
		return nil, nil, err
	}
	given, _ := spec["nodeSelector"].(map[string]any)
	own = labels.Set{}
	for key, value := range given {
		own[key], _ = value.(string)
	}
	if labels.Conflicts(own, wanted) {
		return nil, nil, r.Forbid("pod node label selector conflicts with its namespace node label selector")
	}
	if !allows(p.Config.Whitelists[r.Namespace], own) || !allows(p.Config.Whitelists[r.Namespace], wanted) {
		return nil, nil, r.Forbid("pod node label selector labels conflict with its namespace whitelist")
	}
	return own, wanted, nil
}

// wanted returns the selector of the review's namespace.
func (p Plugin) wanted(ctx context.Context, r *review.Review) (labels.Set, error) {
	namespace, err := p.Namespaces.Get(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	annotation, ok := namespace.Annotation(namespaces.NodeSelector)
	if !ok {
		return p.Config.Default, nil
	}
	wanted, err := labels.ConvertSelectorToLabelsMap(annotation)
	if err != nil {
		return nil, r.Forbid("the node selector of namespace %s is not readable: %v", r.Namespace, err)
	}
	return wanted, nil
}

// allows reports whether a whitelist contains all labels of a selector. An empty one
// allows everything.
func allows(whitelist, selector labels.Set) bool {
	if len(whitelist) == 0 {
		return true
	}
	for key, value := range selector {
		if allowed, ok := whitelist[key]; !ok || allowed != value {
			return false
		}
	}
	return true
}
