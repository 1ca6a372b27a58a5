// Package abac authorizes by a policy file: one JSON object in each line, which names users
// or groups and what they may do. The file is read once, at the start. It reads no stored
// objects. It serves section "Authorization notes" of the specification.
package abac

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	any         = "*"
	kind        = "Policy"
	version     = "v1beta1"
	maxFileSize = 16 << 20
)

// readVerbs are the verbs that a read-only policy allows.
var readVerbs = []string{"get", "list", "watch"}

// policy is one line of the file.
type policy struct {
	User            string `json:"user"`
	Group           string `json:"group"`
	ReadOnly        bool   `json:"readonly"`
	Namespace       string `json:"namespace"`
	Resource        string `json:"resource"`
	APIGroup        string `json:"apiGroup"`
	NonResourcePath string `json:"nonResourcePath"`
}

// Policies are the policies of a file. They are immutable.
type Policies []policy

// Load reads a policy file. It returns an error with the line of the first policy that is
// not valid.
func Load(path string, v vocabulary.Vocabulary) (Policies, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("%s: has more than %d bytes", path, maxFileSize)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all, err := parse(content, v)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return all, nil
}

// parse reads the lines of a file. Its errors begin with the number of the line.
func parse(content []byte, v vocabulary.Vocabulary) (all Policies, err error) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxFileSize)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p, err := parseLine(line, v.Qualified("abac.authorization", version))
		if err != nil {
			return nil, fmt.Errorf("%d: %w", number, err)
		}
		all = append(all, p)
	}
	return all, lines.Err()
}

// parseLine reads a policy, either with an apiVersion and a spec, or one of the form that
// preceded it, which has the fields of the spec only.
func parseLine(line, apiVersion string) (policy, error) {
	var versioned struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Spec       json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal([]byte(line), &versioned); err != nil {
		return policy{}, err
	}
	var p policy
	if versioned.APIVersion == "" && versioned.Kind == "" {
		err := json.Unmarshal([]byte(line), &p)
		return p.unversioned(), err
	}
	if versioned.APIVersion != apiVersion || versioned.Kind != kind {
		return p, fmt.Errorf("%s of %q is not a %s of %q", versioned.Kind, versioned.APIVersion, kind, apiVersion)
	}
	if len(versioned.Spec) == 0 {
		return p, fmt.Errorf("spec: required value")
	}
	err := json.Unmarshal(versioned.Spec, &p)
	return p.authenticated(), err
}

// authenticated replaces any user and any group with all authenticated users.
func (p policy) authenticated() policy {
	if p.User == any || p.Group == any {
		p.Group = services.GroupAuthenticated
		if p.User == any {
			p.User = ""
		}
	}
	return p
}

// unversioned fills a policy of the old form, in which an absent field means any value.
func (p policy) unversioned() policy {
	if p.User == "" && p.Group == "" {
		p.Group = any
	}
	p = p.authenticated()
	if p.Namespace == "" && p.Resource == "" {
		p.NonResourcePath = any
	}
	p.APIGroup = any
	for _, field := range []*string{&p.Namespace, &p.Resource} {
		if *field == "" {
			*field = any
		}
	}
	return p
}

// Authorize implements services.Authz: allowed, or no opinion. Both depend on nothing that
// is stored.
func (all Policies) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	for _, p := range all {
		if p.covers(a.User) && p.allows(a) {
			return services.Decision{Allowed: true, Reason: "ABAC: allowed by a policy of the file", Revision: math.MaxInt64, AnyName: true}, nil
		}
	}
	return services.Decision{Reason: "No policy matched.", Revision: math.MaxInt64, AnyName: true}, nil
}

// covers reports whether the policy is about a user. A policy with neither user nor group
// covers none, and one with both requires both.
func (p policy) covers(u services.UserInfo) bool {
	if p.User == "" && p.Group == "" {
		return false
	}
	return (p.User == "" || p.User == u.Name) && (p.Group == "" || slices.Contains(u.Groups, p.Group))
}

func (p policy) allows(a services.Attributes) bool {
	if p.ReadOnly && !slices.Contains(readVerbs, a.Verb) {
		return false
	}
	if a.Path != "" {
		return matchesPath(p.NonResourcePath, a.Path)
	}
	return matches(p.Namespace, a.Namespace) && matches(p.Resource, a.Resource) && matches(p.APIGroup, a.Group)
}

func matches(pattern, value string) bool { return pattern == any || pattern == value }

func matchesPath(pattern, path string) bool {
	stem, open := strings.CutSuffix(pattern, any)
	return pattern == path || open && strings.HasPrefix(path, stem)
}

// Rules implements services.Authz.
func (all Policies) Rules(_ context.Context, r services.RulesRequest) (services.Rules, error) {
	var rules services.Rules
	for _, p := range all {
		if !p.covers(r.User) {
			continue
		}
		verbs := []string{any}
		if p.ReadOnly {
			verbs = readVerbs
		}
		if p.Resource != "" && matches(p.Namespace, r.Namespace) {
			rules.Resource = append(rules.Resource, services.ResourceRule{Verbs: verbs, APIGroups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			rules.NonResource = append(rules.NonResource, services.NonResourceRule{Verbs: verbs, Paths: []string{p.NonResourcePath}})
		}
	}
	return rules, nil
}

var _ services.Authz = Policies(nil)
