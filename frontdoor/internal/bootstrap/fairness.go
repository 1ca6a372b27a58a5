package bootstrap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/datafiles"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// fairness is the file with the priority levels and flow schemas.
const fairness = "fairness.yaml"

// level is a priority level. One without shares is exempt; one without queues rejects
// requests that exceed its concurrency.
type level struct {
	kept
	Shares   int64 `json:"shares"`
	Lendable int64 `json:"lendable"`
	Queues   int64 `json:"queues"`
	Hand     int64 `json:"hand"`
}

// kept is what levels and flows have in common.
type kept struct {
	Name      string `json:"name"`
	Mandatory bool   `json:"mandatory"`
	// Since and Until are the first and the last release with the object; "" for any.
	Since string `json:"since"`
	Until string `json:"until"`
}

// in reports whether a release has the object.
func (k kept) in(r release.Release) (bool, error) {
	for name, ok := range map[string]func(release.Release) bool{
		k.Since: func(since release.Release) bool { return !r.Before(since) },
		k.Until: func(until release.Release) bool { return !until.Before(r) },
	} {
		if name == "" {
			continue
		}
		other, err := release.Of(name)
		if err != nil || !ok(other) {
			return false, err
		}
	}
	return true, nil
}

// Fair is a default object of fair shares.
type Fair struct {
	Object    map[string]any
	Mandatory bool
}

// flow assigns requests to a level.
type flow struct {
	kept
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
	// Nodes is true for the requests by which nodes report that they work.
	Nodes bool `json:"nodes"`
}

// queueLength is the maximum number of requests in one queue.
const queueLength = 50

// stable is the first release with version v1 of these kinds, where shares have another
// name, levels lend seats, and leader election uses Leases only. updated is the first one that
// updates the objects, by an annotation.
var (
	stable, _  = release.Of("1.29")
	updated, _ = release.Of("1.22")
)

// AutoUpdate returns the annotation by which a release updates FlowSchemas and
// PriorityLevelConfigurations, or does not; "" for releases that never do.
func AutoUpdate(v vocabulary.Vocabulary, r release.Release) string {
	if r.Before(updated) {
		return ""
	}
	return v.Qualified("apf", "autoupdate-spec")
}

// Fairness returns the priority levels and flow schemas of a release. The last one is the exempt level,
// whose existence shows that all have been created.
func Fairness(v vocabulary.Vocabulary, r release.Release) ([]Fair, error) {
	var all struct {
		Levels []level `json:"levels"`
		Flows  []flow  `json:"flows"`
	}
	for file, content := range datafiles.Files(packed) {
		if file != fairness {
			continue
		}
		if err := datafiles.Decode(resolver(v).Replace(content), &all); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	made := func(kind string, spec map[string]any) object { return object{v, r, kind, spec} }
	var levels, flows, last []Fair
	for _, l := range all.Levels {
		if err := l.add(&levels, made("PriorityLevelConfiguration", l.spec(r))); err != nil {
			return nil, err
		}
	}
	for _, f := range all.Flows {
		spec, err := f.spec(v, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", fairness, f.Name, err)
		}
		if err := f.add(&flows, made("FlowSchema", spec)); err != nil {
			return nil, err
		}
	}
	suggested := func(all []Fair) (some []Fair) {
		for _, f := range all {
			if f.Mandatory {
				last = append(last, f)
			} else {
				some = append(some, f)
			}
		}
		return some
	}
	objects := slices.Concat(suggested(flows), suggested(levels))
	slices.Reverse(last)
	return append(objects, last...), nil
}

// object is an object without its name.
type object struct {
	vocabulary vocabulary.Vocabulary
	release    release.Release
	kind       string
	spec       map[string]any
}

// add appends the object if the release has it.
func (k kept) add(to *[]Fair, o object) error {
	has, err := k.in(o.release)
	if err != nil || !has {
		return err
	}
	version := "v1"
	if o.release.Before(stable) {
		version = "v1beta1"
	}
	metadata := map[string]any{"name": k.Name}
	if annotation := AutoUpdate(o.vocabulary, o.release); annotation != "" {
		metadata["annotations"] = map[string]any{annotation: "true"}
	}
	*to = append(*to, Fair{map[string]any{"apiVersion": o.vocabulary.Group("flowcontrol.apiserver.") + "/" + version, "kind": o.kind,
		"metadata": metadata, "spec": o.spec}, k.Mandatory})
	return nil
}

func (l level) spec(r release.Release) map[string]any {
	older := r.Before(stable)
	if l.Shares == 0 {
		spec := map[string]any{"type": "Exempt"}
		if !older {
			spec["exempt"] = map[string]any{"nominalConcurrencyShares": int64(0), "lendablePercent": int64(0)}
		}
		return spec
	}
	response := map[string]any{"type": "Reject"}
	if l.Queues > 0 {
		response = map[string]any{"type": "Queue", "queuing": map[string]any{
			"queues": l.Queues, "handSize": l.Hand, "queueLengthLimit": int64(queueLength)}}
	}
	limited := map[string]any{"limitResponse": response}
	if older {
		limited["assuredConcurrencyShares"] = l.Shares
	} else {
		limited["nominalConcurrencyShares"], limited["lendablePercent"] = l.Shares, l.Lendable
	}
	return map[string]any{"type": "Limited", "limited": limited}
}

func (f flow) spec(v vocabulary.Vocabulary, r release.Release) (map[string]any, error) {
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
	rules := f.requests(v, r)
	rules["subjects"] = subjects
	spec := map[string]any{"matchingPrecedence": f.Precedence, "rules": []any{rules},
		"priorityLevelConfiguration": map[string]any{"name": f.Level}}
	if f.By != "" {
		spec["distinguisherMethod"] = map[string]any{"type": f.By}
	}
	return spec, nil
}

// requests returns the rules for the requests of a flow.
func (f flow) requests(v vocabulary.Vocabulary, r release.Release) map[string]any {
	every := []any{"*"}
	resources := func(group, resources, verbs, namespaces []any) map[string]any {
		return map[string]any{"apiGroups": group, "resources": resources, "verbs": verbs, "namespaces": namespaces}
	}
	switch {
	case f.Paths != nil:
		return map[string]any{"nonResourceRules": []any{map[string]any{"verbs": []any{"get"}, "nonResourceURLs": anys(f.Paths)}}}
	case f.Locks != "":
		verbs := []any{"get", "create", "update"}
		rules := []any{resources([]any{v.Group("coordination.")}, []any{"leases"}, verbs, every)}
		if r.Before(stable) {
			rules = append([]any{resources([]any{""}, []any{"endpoints", "configmaps"}, verbs, []any{f.Locks})}, rules...)
		}
		return map[string]any{"resourceRules": rules}
	case f.Nodes:
		nodes := resources([]any{""}, []any{"nodes", "nodes/status"}, every, every)
		nodes["clusterScope"] = true
		return map[string]any{"resourceRules": []any{nodes, resources([]any{v.Group("coordination.")}, []any{"leases"}, every, every)}}
	}
	whole := resources(every, every, every, every)
	whole["clusterScope"] = true
	return map[string]any{"resourceRules": []any{whole},
		"nonResourceRules": []any{map[string]any{"verbs": every, "nonResourceURLs": every}}}
}
