package usage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/portico-platform/portico/admission/internal/config"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/resource"
)

// Limited is what may be used only in a namespace with a quota for it.
type Limited struct {
	// APIGroup and Resource are the type whose objects MatchContains is about.
	APIGroup string `json:"apiGroup"`
	Resource string `json:"resource"`
	// MatchContains are parts of the names of amounts.
	MatchContains []string `json:"matchContains"`
	// MatchScopes are conditions for pods; a quota with a condition of that name is
	// needed for pods that meet one.
	MatchScopes []quota.Scope `json:"matchScopes"`
}

// ParseLimited reads the configuration of the plugin.
func ParseLimited(d config.Document) ([]Limited, error) {
	var read struct {
		APIVersion       string    `json:"apiVersion"`
		Kind             string    `json:"kind"`
		LimitedResources []Limited `json:"limitedResources"`
	}
	err := d.DecodeVersion(&read, config.Version{Group: "apiserver.config.", Version: "v1", Kind: "ResourceQuotaConfiguration"},
		config.Version{Group: "resourcequota.admission.", Version: "v1beta1", Kind: "Configuration"},
		config.Version{Group: "resourcequota.admission.", Version: "v1alpha1", Kind: "Configuration"})
	if err != nil {
		return nil, err
	}
	operators := []string{"In", "NotIn", "Exists", "DoesNotExist"}
	for i, limited := range read.LimitedResources {
		if limited.Resource == "" {
			return nil, d.Invalid(fmt.Sprintf("limitedResources[%d].resource", i), "required value")
		}
		for j, scope := range limited.MatchScopes {
			if !slices.Contains(operators, scope.Operator) {
				return nil, d.Invalid(fmt.Sprintf("limitedResources[%d].matchScopes[%d].operator", i, j),
					"unsupported value %q: supported values: %q", scope.Operator, operators)
			}
		}
	}
	return read.LimitedResources, nil
}

// needs is what quotas have to cover for one object.
type needs struct {
	amounts []string // names, sorted
	scopes  []quota.Scope
}

// needs returns what an object uses of what is limited.
func (p *Plugin) needs(of resource.GroupResource, item quota.Item) (n needs) {
	for _, limited := range p.limited {
		n.scopes = append(n.scopes, slices.DeleteFunc(slices.Clone(limited.MatchScopes), func(s quota.Scope) bool { return !item.Meets(s) })...)
		if of != (resource.GroupResource{Group: limited.APIGroup, Resource: limited.Resource}) {
			continue
		}
		for name, amount := range item.Used {
			if amount.Sign() > 0 && slices.ContainsFunc(limited.MatchContains, func(part string) bool { return strings.Contains(name, part) }) {
				n.amounts = append(n.amounts, name)
			}
		}
	}
	slices.Sort(n.amounts)
	n.amounts = slices.Compact(n.amounts)
	return n
}

// without returns what the quotas do not cover.
func (n needs) without(quotas []quota.Quota, item quota.Item) needs {
	amounts, scopes := map[string]bool{}, map[string]bool{}
	for i := range quotas {
		for _, scope := range quotas[i].Scopes() {
			if item.Meets(scope) {
				scopes[scope.Name] = true
			}
		}
		if item.In(&quotas[i]) {
			for name := range quotas[i].Status.Hard {
				amounts[name] = true
			}
		}
	}
	return needs{
		amounts: slices.DeleteFunc(slices.Clone(n.amounts), func(name string) bool { return amounts[name] }),
		scopes:  slices.DeleteFunc(slices.Clone(n.scopes), func(s quota.Scope) bool { return scopes[s.Name] }),
	}
}

func (n needs) none() bool { return len(n.amounts) == 0 && len(n.scopes) == 0 }

// cover refuses an object that needs a quota that its namespace does not have: with
// Forbidden (403) for an amount, and with 500 for a scope, as in release 1.21.
func (p *Plugin) cover(ctx context.Context, r *review.Review, item quota.Item, known []quota.Quota) error {
	needs := p.needs(r.Type(), item)
	if needs = needs.without(known, item); needs.none() {
		return nil
	}
	// The mirror may be a moment behind: only the newest state refuses.
	now, err := p.stored(ctx, r.Namespace)
	if err != nil {
		return err
	}
	switch needs = needs.without(now, item); {
	case len(needs.amounts) > 0:
		return r.Forbid("insufficient quota to consume: %s", strings.Join(needs.amounts, ","))
	case len(needs.scopes) > 0:
		return review.Failed("insufficient quota to match these scopes: %v", needs.scopes)
	}
	return nil
}

// stored returns the quotas of a namespace as they are now.
func (p *Plugin) stored(ctx context.Context, namespace string) ([]quota.Quota, error) {
	request := services.ListRequest{GroupResource: quotas, Namespace: namespace}
	var all []quota.Quota
	for {
		page, err := p.ledger.List(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Objects {
			q, err := Parse(o)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", o.Key, err)
			}
			all = append(all, q)
		}
		if page.Next == "" {
			return all, nil
		}
		request = page.Following(request)
	}
}
