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
	devices []string // names of ResourceClaims
}

// parserOfPods returns the function that parses stored pods. Pods without a node are not
// mirrored. Those that a node made for its own static pods use nothing: it could take rights
// by creating one.
func parserOfPods(v vocabulary.Vocabulary) func(services.Object) (*pod, error) {
	annotation := v.Qualified("", "config.mirror")
	return func(o services.Object) (*pod, error) {
		stored, err := tree.Decode(o.JSON)
		if err != nil {
			return nil, err
		}
		spec := tree.Child(stored, "spec")
		node := tree.Text(spec, "nodeName")
		if node == "" {
			return nil, changes.ErrSkip
		}
		if _, mirrored := tree.Child(stored, "metadata", "annotations")[annotation]; mirrored {
			return &pod{node: node}, nil
		}
		p := &pod{node: node, account: tree.Text(spec, "serviceAccountName"), secrets: sets.Set[string]{}, configMaps: sets.Set[string]{}, claims: sets.Set[string]{}}
		p.uses(o.Key.Name, spec)
		p.devices = deviceClaims(spec, tree.Child(stored, "status"))
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

// deviceClaims returns the ResourceClaims of a pod: those that it names, and those that were
// made for it, which its status names.
func deviceClaims(spec, status map[string]any) (names []string) {
	add := func(name string) {
		if name != "" {
			names = append(names, name)
		}
	}
	made := map[string]string{}
	for _, s := range tree.Objects(status, "resourceClaimStatuses") {
		made[tree.Text(s, "name")] = tree.Text(s, "resourceClaimName")
	}
	for _, c := range tree.Objects(spec, "resourceClaims") {
		switch {
		case tree.Text(c, "resourceClaimName") != "":
			add(tree.Text(c, "resourceClaimName"))
		case tree.Text(c, "resourceClaimTemplateName") != "":
			add(made[tree.Text(c, "name")])
		}
	}
	add(tree.Text(status, "extendedResourceClaimStatus", "resourceClaimName"))
	return names
}
