package authn

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"

	"github.com/portico-platform/portico/authn/internal/config"
	"github.com/portico-platform/portico/authn/internal/issuers"
	"github.com/portico-platform/portico/authn/internal/method"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/release"
)

const (
	// flaggedFor and configuredFor bound how long the result for an ID token may be cached, of
	// the issuer of --oidc-issuer-url, and of one of a file, which may be removed.
	flaggedFor, configuredFor = time.Minute, 10 * time.Second
)

// oidcFlags registers the flags for ID tokens.
func oidcFlags(fs *pflag.FlagSet) {
	fs.String("authentication-config", "", "`file` with an AuthenticationConfiguration, instead of --oidc-*; read again when it changes")
	fs.String("oidc-issuer-url", "", "https URL of the OpenID Connect issuer whose ID tokens are accepted")
	fs.String("oidc-client-id", "", "client ID that ID tokens must be issued for")
	fs.String("oidc-username-claim", "sub", "claim with the user name")
	fs.String("oidc-username-prefix", "", "prefix of user names; if empty, <issuer-url># unless the claim is email; - for none")
	fs.String("oidc-groups-claim", "", "claim with the list of groups")
	fs.String("oidc-groups-prefix", "", "prefix of group names")
	fs.StringToString("oidc-required-claim", nil, "key=value of a claim that ID tokens must have; may be given more than once")
	fs.StringSlice("oidc-signing-algs", []string{"RS256"}, "accepted signature algorithms of ID tokens: "+strings.Join(issuers.SigningAlgorithms(), ", "))
	fs.String("oidc-ca-file", "", "PEM file of the authorities of the issuer's serving certificate; if empty, the host's")
}

// fileOf opens the file of --authentication-config; nil without one. Its errors are usage
// errors.
func fileOf(n *run.Node, now func() time.Time) (*configuration, error) {
	path, _ := n.Flags.GetString("authentication-config")
	if path == "" {
		return nil, nil
	}
	var err error
	n.Flags.Visit(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "oidc-") {
			err = run.Usagef("--authentication-config: cannot be used together with --%s", f.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	reserved, err := serviceAccountIssuers(n)
	if err != nil {
		return nil, err
	}
	parser, err := config.NewParser(config.Settings{Vocabulary: n.Vocabulary, Release: n.Release, Reserved: reserved,
		Issuer: issuers.Config{Algorithms: issuers.SigningAlgorithms(), CredentialID: credentialID(n), CacheFor: configuredFor}})
	if err != nil {
		return nil, err
	}
	settings := issuers.Settings{Metrics: issuers.NewMetrics(n.Metrics), Now: now, Log: n.Log}
	file, err := openConfiguration(path, parser, settings, n.Metrics)
	if err != nil {
		return nil, run.Usagef("--authentication-config: %v", err)
	}
	if file.anonymous() != nil && n.Flags.Changed("anonymous-auth") {
		return nil, run.Usagef("--authentication-config: anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file")
	}
	n.Go("following the authentication configuration", file.run)
	return file, nil
}

// credentialID returns the extra attribute with the ID of a token.
func credentialID(n *run.Node) string {
	return n.Vocabulary.Qualified("authentication", "credential-id")
}

// credentialIDSince is credentialID at the releases that have it, empty before.
func credentialIDSince(n *run.Node) string {
	if n.Release.Before(release.V136) {
		return ""
	}
	return credentialID(n)
}

// openID is the constructor for the issuer of --oidc-issuer-url.
func openID(_ context.Context, n *run.Node, now func() time.Time) (method.Method, error) {
	issuer, err := flagged(n.Flags)
	if err != nil || issuer == nil {
		return nil, err
	}
	reserved, err := serviceAccountIssuers(n)
	if err != nil {
		return nil, err
	}
	if _, invalid := validation.CompileAndValidateJWTAuthenticator(nil, issuer.JWTAuthenticator, reserved); len(invalid) > 0 {
		return nil, run.Usagef("--oidc-*: %v", invalid.ToAggregate())
	}
	issuer.CredentialID = credentialIDSince(n)
	set := issuers.New([]issuers.Config{*issuer}, issuers.Settings{Metrics: issuers.NewMetrics(n.Metrics), Now: now, Log: n.Log})
	n.Go("discovering the OpenID Connect issuer", set.Run)
	return set, nil
}

// flagged returns the issuer that --oidc-* describe, nil if there is none. Its errors are usage
// errors.
func flagged(fs *pflag.FlagSet) (*issuers.Config, error) {
	text := func(name string) string {
		value, _ := fs.GetString("oidc-" + name)
		return value
	}
	url, client := text("issuer-url"), text("client-id")
	switch {
	case url == "" && client == "":
		return nil, nil
	case url == "" || client == "":
		return nil, run.Usagef("--oidc-issuer-url and --oidc-client-id must be used together")
	case !strings.HasPrefix(url, "https://"):
		return nil, run.Usagef("--oidc-issuer-url: %q is not an https URL", url)
	}
	c := &issuers.Config{RequireIssued: true, CacheFor: flaggedFor}
	c.Algorithms, _ = fs.GetStringSlice("oidc-signing-algs")
	if err := issuers.CheckSigningAlgorithms(c.Algorithms); err != nil {
		return nil, run.Usagef("--oidc-signing-algs: %v", err)
	}
	if path := text("ca-file"); path != "" {
		var err error
		if c.Roots, err = method.ReadRoots([]string{path}); err != nil {
			return nil, run.Usagef("--oidc-ca-file: %v", err)
		}
	}
	prefix := text("username-prefix")
	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && text("username-claim") != "email":
		prefix = url + "#"
	}
	c.Issuer = apiserver.Issuer{URL: url, Audiences: []string{client}}
	c.ClaimMappings.Username = apiserver.PrefixedClaimOrExpression{Claim: text("username-claim"), Prefix: &prefix}
	if claim := text("groups-claim"); claim != "" {
		groups := text("groups-prefix")
		c.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: claim, Prefix: &groups}
	}
	required, _ := fs.GetStringToString("oidc-required-claim")
	for _, claim := range slices.Sorted(maps.Keys(required)) {
		c.ClaimValidationRules = append(c.ClaimValidationRules, apiserver.ClaimValidationRule{Claim: claim, RequiredValue: required[claim]})
	}
	return c, nil
}
