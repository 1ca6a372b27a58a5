package audit

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"
	evaluate "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	identity "k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services"
)

// maxPolicy bounds a policy file, in bytes. Each request may be compared with every rule.
const maxPolicy = 1 << 20

// Policy says which requests are logged, at which level. It is immutable.
type Policy struct{ rules evaluate.PolicyRuleEvaluator }

// ParsePolicy parses a policy in YAML or JSON. An error names the field.
func ParsePolicy(text []byte, apiVersion string) (*Policy, error) {
	if len(text) > maxPolicy {
		return nil, fmt.Errorf("larger than %d bytes", maxPolicy)
	}
	var given auditv1.Policy
	if err := yaml.UnmarshalStrict(text, &given); err != nil {
		return nil, err
	}
	switch {
	case given.APIVersion != apiVersion:
		return nil, fmt.Errorf("apiVersion: %q is not %q", given.APIVersion, apiVersion)
	case given.Kind != "Policy":
		return nil, fmt.Errorf("kind: %q is not %q", given.Kind, "Policy")
	case len(given.Rules) == 0:
		return nil, errors.New("rules: at least one is required")
	}
	var parsed audit.Policy
	if err := auditv1.Convert_v1_Policy_To_audit_Policy(&given, &parsed, nil); err != nil {
		return nil, err
	}
	if errs := validation.ValidatePolicy(&parsed); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return &Policy{policy.NewPolicyRuleEvaluator(&parsed)}, nil
}

// Rule returns what the first rule that matches a request of its caller says. Requests
// without a matching rule are not logged.
func (p *Policy) Rule(a services.Attributes) *Rule {
	return &Rule{p.rules.EvaluatePolicyRule(authorizer.AttributesRecord{
		User: &identity.DefaultInfo{Name: a.User.Name, Groups: a.User.Groups}, Verb: a.Verb,
		Namespace: a.Namespace, APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
		ResourceRequest: a.Resource != "", Path: a.Path,
	})}
}

// Rule is what a policy says about one request. A nil Rule, without a policy, logs the
// end of each request and the start of each connection, at level Metadata.
type Rule struct{ config evaluate.RequestAuditConfig }

// level returns the level of the events.
func (r *Rule) level() audit.Level {
	if r == nil {
		return audit.LevelMetadata
	}
	return r.config.Level
}

// Logs reports whether there is an event for a stage of a request.
func (r *Rule) Logs(stage string) bool {
	if r == nil {
		return stage != RequestReceived
	}
	return r.config.Level != audit.LevelNone && !slices.Contains(r.config.OmitStages, audit.Stage(stage))
}

// LogsRequest reports whether the body of the request is logged.
func (r *Rule) LogsRequest() bool {
	return r != nil && !r.level().Less(audit.LevelRequest)
}

// LogsResponse reports whether the body of the response is logged.
func (r *Rule) LogsResponse() bool {
	return r != nil && !r.level().Less(audit.LevelRequestResponse)
}
