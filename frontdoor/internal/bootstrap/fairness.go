package bootstrap

import (
	_ "embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

//go:embed fairness.yaml
var shares []byte

// level is a priority level. One without shares is exempt; one without queues rejects
// requests that exceed its concurrency.
type level struct {
	Name   string `json:"name"`
	Shares int64  `json:"shares"`
	Queues int64  `json:"queues"`
	Hand   int64  `json:"hand"`
}

// flow assigns requests to a level.
type flow struct {
	Name       string `json:"name"`
	Level      string `json:"level"`
	Precedence int64  `json:"precedence"`
	// By is the flow distinguisher.
	By string `json:"by"`
	// Of lists the subjects, in the format of the policy files.
	Of []string `json:"of"`
	// Paths are the non-resource paths that are read; Locks is the namespace whose
	// leader election locks are used.
	Paths []string `json:"paths"`
	Locks string   `json:"locks"`
}

// queueLength is the maximum number of requests in one queue.
const queueLength = 50

// stable is the first release with version v1 of these kinds, where shares have another
// name.
var stable, _ = release.Of("1.29")

// fairness returns the priority levels and then the flow schemas of a release.
func fairness(v vocabulary.Vocabulary, r release.Release) ([]map[string]any, error) {
	var all struct {
		Levels []level `json:"levels"`
		Flows  []flow  `json:"flows"`
	}
	if err := yaml.UnmarshalStrict([]byte(resolver(v).Replace(string(shares))), &all); err != nil {
		return nil, fmt.Errorf("fairness.yaml: %w", err)
	}
	version, named := "v1", "nominalConcurrencyShares"
	if r.Before(stable) {
		version, named = "v1beta1", "assuredConcurrencyShares"
	}
	object := func(kind, name string, spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": v.Group("flowcontrol.apiserver.") + "/" + version, "kind": kind,
			"metadata": map[string]any{"name": name}, "spec": spec}
	}
	var objects []map[string]any
	for _, l := range all.Levels {
		objects = append(objects, object("PriorityLevelConfiguration", l.Name, l.spec(named)))
	}
	for _, f := range all.Flows {
		spec, err := f.spec(v)
		if err != nil {
			return nil, fmt.Errorf("fairness.yaml: %s: %w", f.Name, err)
		}
		objects = append(objects, object("FlowSchema", f.Name, spec))
	}
	return objects, nil
}

func (l level) spec(shares string) map[string]any {
	if l.Shares == 0 {
		return map[string]any{"type": "Exempt"}
	}
	response := map[string]any{"type": "Reject"}
	if l.Queues > 0 {
		response = map[string]any{"type": "Queue", "queuing": map[string]any{
			"queues": l.Queues, "handSize": l.Hand, "queueLengthLimit": int64(queueLength)}}
	}
	return map[string]any{"type": "Limited", "limited": map[string]any{
		shares: l.Shares, "limitResponse": response}}
}

func (f flow) spec(v vocabulary.Vocabulary) (map[string]any, error) {
	subjects := make([]any, len(f.Of))
	for i, who := range f.Of {
		switch what, name, _ := strings.Cut(who, " "); what {
		case "group":
			subjects[i] = map[string]any{"kind": "Group", "group": map[string]any{"name": name}}
		case "user":
			subjects[i] = map[string]any{"kind": "User", "user": map[string]any{"name": name}}
		case "account":
			subjects[i] = map[string]any{"kind": "ServiceAccount", "serviceAccount": map[string]any{"namespace": v.Namespace("system"), "name": name}}
		default:
			return nil, fmt.Errorf("%q is neither group, user nor account", who)
		}
	}
	rules := f.requests(v)
	rules["subjects"] = subjects
	spec := map[string]any{"matchingPrecedence": f.Precedence, "rules": []any{rules},
		"priorityLevelConfiguration": map[string]any{"name": f.Level}}
	if f.By != "" {
		spec["distinguisherMethod"] = map[string]any{"type": f.By}
	}
	return spec, nil
}

// requests returns the rules for the requests of a flow.
func (f flow) requests(v vocabulary.Vocabulary) map[string]any {
	every := []any{"*"}
	resources := func(group, resources, verbs, namespaces []any) map[string]any {
		return map[string]any{"apiGroups": group, "resources": resources, "verbs": verbs, "namespaces": namespaces}
	}
	switch {
	case f.Paths != nil:
		return map[string]any{"nonResourceRules": []any{map[string]any{"verbs": []any{"get"}, "nonResourceURLs": anys(f.Paths)}}}
	case f.Locks != "":
		verbs := []any{"get", "create", "update"}
		return map[string]any{"resourceRules": []any{
			resources([]any{""}, []any{"endpoints", "configmaps"}, verbs, []any{f.Locks}),
			resources([]any{v.Group("coordination.")}, []any{"leases"}, verbs, every)}}
	}
	whole := resources(every, every, every, every)
	whole["clusterScope"] = true
	return map[string]any{"resourceRules": []any{whole},
		"nonResourceRules": []any{map[string]any{"verbs": every, "nonResourceURLs": every}}}
}
