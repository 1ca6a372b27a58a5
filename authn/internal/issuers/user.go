package issuers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/portico-platform/portico/services"
)

// user returns the user of verified claims.
func (i *issuer) user(ctx context.Context, c claims) (services.UserInfo, error) {
	var none services.UserInfo
	m := mapping{issuer: i, ctx: ctx, claims: c}
	if i.evaluates() {
		m.values = claimValues(c)
	}
	name, err := m.name()
	if err != nil {
		return none, err
	}
	user := services.UserInfo{Name: name}
	if user.Groups, err = m.groups(); err != nil {
		return none, err
	}
	if user.UID, err = m.uid(); err != nil {
		return none, err
	}
	if user.Extra, err = m.extra(); err != nil {
		return none, err
	}
	if err := m.checkClaims(); err != nil {
		return none, err
	}
	if rules := i.Expressions.UserValidationRules; rules != nil {
		results, err := rules.EvalUser(ctx, userValues(user))
		if err != nil {
			return none, err
		}
		return user, obeyed(results)
	}
	return user, nil
}

// evaluates reports whether any expression reads claims.
func (i *issuer) evaluates() bool {
	e := i.Expressions
	return e.Username != nil || e.Groups != nil || e.UID != nil || e.Extra != nil || e.ClaimValidationRules != nil
}

// mapping maps the claims of one token.
type mapping struct {
	*issuer
	ctx    context.Context
	claims claims
	values traits.Mapper // for expressions
}

func (m *mapping) name() (string, error) {
	if m.Expressions.Username != nil {
		name, err := m.text(m.Expressions.Username)
		if err == nil && name == "" {
			err = errors.New("the expression of the user name returns an empty string")
		}
		return name, err
	}
	by := m.ClaimMappings.Username
	name, err := m.claims.text(by.Claim)
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", fmt.Errorf("claim %s has no user name", by.Claim)
	}
	if verified, ok := m.claims["email_verified"]; ok && by.Claim == "email" && string(verified) != "true" {
		return "", errors.New("the email address is not verified")
	}
	return prefixed(by, name), nil
}

func prefixed(by apiserver.PrefixedClaimOrExpression, value string) string {
	if by.Prefix == nil {
		return value
	}
	return *by.Prefix + value
}

// groups returns the groups of a claim, which may also be one string, or of an expression.
func (m *mapping) groups() ([]string, error) {
	if m.Expressions.Groups != nil {
		result, err := m.Expressions.Groups.EvalClaimMapping(m.ctx, m.values)
		if err != nil {
			return nil, err
		}
		return texts(result.EvalResult)
	}
	by := m.ClaimMappings.Groups
	raw, ok := m.claims[by.Claim]
	if by.Claim == "" || !ok {
		return nil, nil
	}
	var groups []string
	if err := json.Unmarshal(raw, &groups); err != nil {
		one, err := m.claims.text(by.Claim)
		if err != nil {
			return nil, fmt.Errorf("claim %s is neither a string nor a list of strings", by.Claim)
		}
		groups = []string{one}
	}
	for i, group := range groups {
		groups[i] = prefixed(by, group)
	}
	return groups, nil
}

func (m *mapping) uid() (string, error) {
	switch {
	case m.Expressions.UID != nil:
		return m.text(m.Expressions.UID)
	case m.ClaimMappings.UID.Claim != "":
		return m.claims.text(m.ClaimMappings.UID.Claim)
	}
	return "", nil
}

func (m *mapping) extra() (map[string][]string, error) {
	extra := map[string][]string{}
	if id, err := m.claims.text("jti"); err == nil && id != "" && m.CredentialID != "" {
		extra[m.CredentialID] = []string{"JTI=" + id}
	}
	if m.Expressions.Extra != nil {
		results, err := m.Expressions.Extra.EvalClaimMappings(m.ctx, m.values)
		if err != nil {
			return nil, err
		}
		for _, result := range results {
			by, ok := result.ExpressionAccessor.(*authenticationcel.ExtraMappingExpression)
			if !ok {
				return nil, fmt.Errorf("an expression of extra attributes is a %T", result.ExpressionAccessor)
			}
			values, err := texts(result.EvalResult)
			if err != nil {
				return nil, fmt.Errorf("extra attribute %s: %w", by.Key, err)
			}
			if len(values) > 0 {
				extra[by.Key] = values
			}
		}
	}
	if len(extra) == 0 {
		return nil, nil
	}
	return extra, nil
}

// checkClaims applies the validation rules of claims.
func (m *mapping) checkClaims() error {
	for _, rule := range m.ClaimValidationRules {
		if rule.Claim == "" {
			continue
		}
		if got, err := m.claims.text(rule.Claim); err != nil || got != rule.RequiredValue {
			return fmt.Errorf("claim %s is not %q", rule.Claim, rule.RequiredValue)
		}
	}
	if m.Expressions.ClaimValidationRules == nil {
		return nil
	}
	results, err := m.Expressions.ClaimValidationRules.EvalClaimMappings(m.ctx, m.values)
	if err != nil {
		return err
	}
	return obeyed(results)
}

// text evaluates an expression that must return a string.
func (m *mapping) text(by authenticationcel.ClaimsMapper) (string, error) {
	result, err := by.EvalClaimMapping(m.ctx, m.values)
	if err != nil {
		return "", err
	}
	value, ok := result.EvalResult.Value().(string)
	if !ok {
		return "", fmt.Errorf("expression %q does not return a string", result.ExpressionAccessor.GetExpression())
	}
	return value, nil
}

// obeyed returns an error unless all rules are true.
func obeyed(results []authenticationcel.EvaluationResult) error {
	for _, result := range results {
		if holds, ok := result.EvalResult.Value().(bool); ok && holds {
			continue
		}
		var message string
		switch rule := result.ExpressionAccessor.(type) {
		case *authenticationcel.ClaimValidationCondition:
			message = rule.Message
		case *authenticationcel.UserValidationCondition:
			message = rule.Message
		}
		return fmt.Errorf("validation expression '%s' failed: %s", result.ExpressionAccessor.GetExpression(), message)
	}
	return nil
}
