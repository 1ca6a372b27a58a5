package node

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/references"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// pod is what a pod uses in its namespace.
type pod struct {
	node    string
	account string
	secrets, configMaps,
	claims sets.Set[string]
}

// parserOfPods returns the function that parses stored pods. Pods without a node are not
// mirrored, and neither are those that a node made for its own static pods: they would
// give the node rights that it could take by creating one.
func parserOfPods(v vocabulary.Vocabulary) func(services.Object) (*pod, error) {
	annotation := v.Qualified("", "config.mirror")
	return func(o services.Object) (*pod, error) {
		stored, err := tree.Decode(o.JSON)
		if err != nil {
			return nil, err
		}
		spec := tree.Child(stored, "spec")
		node := tree.Text(spec, "nodeName")
		if _, mirrored := tree.Child(stored, "metadata", "annotations")[annotation]; mirrored || node == "" {
			return nil, changes.ErrSkip
		}
		p := &pod{node: node, account: tree.Text(spec, "serviceAccountName"), secrets: sets.Set[string]{}, configMaps: sets.Set[string]{}, claims: sets.Set[string]{}}
		p.uses(o.Key.Name, spec)
		return p, nil
	}
}

// uses adds what a pod uses.
func (p *pod) uses(name string, spec map[string]any) {
	byResource := map[string]sets.Set[string]{references.Secrets: p.secrets, references.ConfigMaps: p.configMaps, references.Claims: p.claims}
	for _, r := range references.OfPod(spec) {
		byResource[r.Resource].Insert(r.Name)
	}
	for _, v := range tree.Objects(spec, "volumes") {
		if _, ephemeral := v["ephemeral"].(map[string]any); ephemeral { // its claim is named after both
			p.claims.Insert(name + "-" + tree.Text(v, "name"))
		}
	}
}
