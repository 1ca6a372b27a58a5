// Package config reads the file of --authorization-config, an AuthorizationConfiguration:
// the authorizers of a process in their order. It makes the webhooks that the file
// describes, and calls none. Fields and messages are those of Kubernetes.
package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/portico-platform/portico/authz/internal/remote"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/kit/configfile"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

const kind = "AuthorizationConfiguration"

// Authorizer is one entry of the file.
type Authorizer struct {
	Type, Name string
	// Webhook is set for the type Webhook.
	Webhook *remote.Webhook
}

// Settings are those of the process.
type Settings struct {
	Vocabulary vocabulary.Vocabulary
	Release    release.Release
	// Types are the valid types of authorizers.
	Types []string
}

// Parser parses the file.
type Parser struct {
	settings Settings
	compiler authorizationcel.Compiler
}

// NewParser returns a parser. It returns an error if expressions cannot be compiled at all.
func NewParser(s Settings) (*Parser, error) {
	environment, err := cel.New(cel.Config{Release: s.Release}).Bounded()
	if err != nil {
		return nil, err
	}
	return &Parser{settings: s, compiler: authorizationcel.NewCompiler(environment)}, nil
}

// Parse returns the authorizers of a file. Errors name the field.
func (p *Parser) Parse(content []byte) ([]Authorizer, error) {
	translated, err := configfile.JSON(content, kind, p.settings.Vocabulary)
	if err != nil {
		return nil, err
	}
	c, err := load.LoadFromData(translated)
	if err != nil {
		return nil, err
	}
	if err := p.check(c).ToAggregate(); err != nil {
		return nil, err
	}
	all := make([]Authorizer, len(c.Authorizers))
	for i, a := range c.Authorizers {
		all[i] = Authorizer{Type: string(a.Type), Name: a.Name}
		if a.Webhook == nil {
			continue
		}
		if all[i].Webhook, err = p.webhook(a.Webhook); err != nil {
			return nil, fmt.Errorf("%s: %w", at(i).Child("connectionInfo", "kubeConfigFile"), err)
		}
	}
	return all, nil
}

// check validates as Kubernetes does.
func (p *Parser) check(c *apiserver.AuthorizationConfiguration) field.ErrorList {
	found := validation.ValidateAuthorizationConfiguration(p.compiler, nil, c, sets.New(p.settings.Types...), sets.New(string(apiserver.TypeWebhook)))
	if len(found) > 0 {
		return found
	}
	for i, a := range c.Authorizers {
		switch {
		case a.Type != apiserver.TypeWebhook:
			if want := strings.ToLower(string(a.Type)); a.Name != want {
				found = append(found, field.Invalid(at(i).Child("name"), a.Name, fmt.Sprintf("expected name %s for authorizer %s", want, a.Type)))
			}
		case a.Webhook.ConnectionInfo.Type != apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile:
			found = append(found, field.Invalid(at(i).Child("connectionInfo", "type"), a.Webhook.ConnectionInfo.Type,
				"authz has no configuration in the cluster: use "+apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile))
		}
	}
	return found
}

func at(i int) *field.Path { return field.NewPath("authorizers").Index(i) }

// webhook returns the client of a valid webhook. It returns an error if its kubeconfig
// cannot be used.
func (p *Parser) webhook(c *apiserver.WebhookConfiguration) (*remote.Webhook, error) {
	version, err := remote.APIVersion(c.SubjectAccessReviewVersion, p.settings.Vocabulary)
	if err != nil {
		return nil, err
	}
	conditions, invalid := validation.ValidateAndCompileMatchConditions(p.compiler, c.MatchConditions)
	if err := invalid.ToAggregate(); err != nil {
		return nil, err
	}
	to := remote.Config{
		File: *c.ConnectionInfo.KubeConfigFile, APIVersion: version, Timeout: c.Timeout.Duration,
		Conditions: conditions, DenyFailures: c.FailurePolicy == apiserver.FailurePolicyDeny,
		Selectors: !p.settings.Release.Before(release.V136),
	}
	if c.CacheAuthorizedRequests {
		to.AllowedTTL = c.AuthorizedTTL.Duration
	}
	if c.CacheUnauthorizedRequests {
		to.DeniedTTL = c.UnauthorizedTTL.Duration
	}
	return remote.New(to)
}
