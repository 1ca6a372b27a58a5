package authn

import (
	"context"
	"strings"
	"time"

	"github.com/portico-platform/portico/authn/internal/method"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tokenkey"
)

// constructor returns a method that is configured by the flags, nil if it is off.
type constructor func(ctx context.Context, n *run.Node, now func() time.Time) (method.Method, error)

// methods returns the methods that the flags turn on, in the order of calls: local checks first,
// the webhook last. The proxy precedes client certificates, because its own certificate may be
// valid as a client certificate too. file is nil without --authentication-config. Invalid flags
// are usage errors.
func methods(ctx context.Context, n *run.Node, file *configuration, now func() time.Time) ([]method.Method, error) {
	idTokens := openID
	if file != nil {
		idTokens = func(context.Context, *run.Node, func() time.Time) (method.Method, error) { return file, nil }
	}
	var all []method.Method
	for _, construct := range []constructor{proxy, clientCertificates, tokenFiles, serviceAccounts, bootstrapTokens, idTokens, webhook} {
		m, err := construct(ctx, n, now)
		if err != nil {
			return nil, err
		}
		if m != nil {
			all = append(all, m)
		}
	}
	return all, nil
}

func proxy(_ context.Context, n *run.Node, now func() time.Time) (method.Method, error) {
	config := method.ProxyConfig{}
	config.ClientCAFile, _ = n.Flags.GetString("requestheader-client-ca-file")
	config.AllowedNames, _ = n.Flags.GetStringSlice("requestheader-allowed-names")
	config.UserHeaders, _ = n.Flags.GetStringSlice("requestheader-username-headers")
	config.GroupHeaders, _ = n.Flags.GetStringSlice("requestheader-group-headers")
	config.ExtraPrefixes, _ = n.Flags.GetStringSlice("requestheader-extra-headers-prefix")
	if config.ClientCAFile == "" {
		if len(config.UserHeaders) > 0 {
			return nil, run.Usagef("--requestheader-username-headers needs --requestheader-client-ca-file")
		}
		return nil, nil
	}
	if len(config.UserHeaders) == 0 {
		return nil, run.Usagef("--requestheader-client-ca-file needs --requestheader-username-headers")
	}
	m, err := method.NewProxy(config, now)
	if err != nil {
		return nil, run.Usagef("--requestheader-client-ca-file: %v", err)
	}
	return m, nil
}

func clientCertificates(_ context.Context, n *run.Node, now func() time.Time) (method.Method, error) {
	paths, _ := n.Flags.GetStringArray("client-ca-file")
	if len(paths) == 0 {
		return nil, nil
	}
	m, err := method.NewCertificate(paths, now)
	if err != nil {
		return nil, run.Usagef("--client-ca-file: %v", err)
	}
	m.UIDs = n.Gates.On(featuregate.CertificateUIDs)
	m.CredentialID = credentialIDSince(n)
	return m, nil
}

func tokenFiles(_ context.Context, n *run.Node, _ func() time.Time) (method.Method, error) {
	paths, _ := n.Flags.GetStringArray("token-auth-file")
	if len(paths) == 0 {
		return nil, nil
	}
	m, err := method.NewTokenFile(paths, n.Log)
	if err != nil {
		return nil, run.Usagef("--token-auth-file: %v", err)
	}
	return m, nil
}

func serviceAccounts(ctx context.Context, n *run.Node, now func() time.Time) (method.Method, error) {
	config := method.ServiceAccountConfig{Vocabulary: n.Vocabulary, Metrics: n.Metrics, Legacy: n.Release.Minor() >= release.LegacyTokensCleaned,
		Nodes: !n.Release.Before(release.V136), CredentialID: credentialIDSince(n)}
	config.KeyFiles, _ = n.Flags.GetStringArray("service-account-key-file")
	if len(config.KeyFiles) == 0 {
		return nil, nil
	}
	var err error
	if config.Issuers, err = serviceAccountIssuers(n); err != nil {
		return nil, err
	}
	if config.Audiences, err = apiAudiences(n); err != nil {
		return nil, err
	}
	if lookup, _ := n.Flags.GetBool("service-account-lookup"); lookup {
		store, err := contract.Store.Use(ctx, n)
		if err != nil {
			return nil, err
		}
		config.Store = store
	}
	m, err := method.NewServiceAccount(config, now)
	if err != nil {
		return nil, run.Usagef("--service-account-key-file: %v", err)
	}
	return m, nil
}

func bootstrapTokens(ctx context.Context, n *run.Node, now func() time.Time) (method.Method, error) {
	if on, _ := n.Flags.GetBool("enable-bootstrap-token-auth"); !on {
		return nil, nil
	}
	store, err := contract.Store.Use(ctx, n)
	if err != nil {
		return nil, err
	}
	return method.NewBootstrap(store, n.Vocabulary, now), nil
}

func webhook(_ context.Context, n *run.Node, now func() time.Time) (method.Method, error) {
	config := method.WebhookConfig{Log: n.Log, Ledger: n.Ledger}
	if config.ConfigFile, _ = n.Flags.GetString("authentication-token-webhook-config-file"); config.ConfigFile == "" {
		return nil, nil
	}
	config.CacheFor, _ = n.Flags.GetDuration("authentication-token-webhook-cache-ttl")
	group := n.Vocabulary.Group("authentication.")
	version, _ := n.Flags.GetString("authentication-token-webhook-version")
	if version = strings.TrimPrefix(version, group+"/"); version != "v1" && version != "v1beta1" {
		return nil, run.Usagef("--authentication-token-webhook-version: %q is neither v1 nor v1beta1", version)
	}
	config.APIVersion = group + "/" + version
	var err error
	if config.Audiences, err = apiAudiences(n); err != nil {
		return nil, err
	}
	m, err := method.NewWebhook(config, now)
	if err != nil {
		return nil, run.Usagef("--authentication-token-webhook-config-file: %v", err)
	}
	return m, nil
}

// serviceAccountIssuers returns the issuers of bound service account tokens.
func serviceAccountIssuers(n *run.Node) ([]string, error) {
	given, _ := n.Flags.GetStringArray("service-account-issuer")
	all, err := tokenkey.Issuers(given, n.Vocabulary.TokenIssuer)
	if err != nil {
		return nil, run.Usagef("--service-account-issuer: %v", err)
	}
	return all, nil
}

// apiAudiences returns the audiences of this API.
func apiAudiences(n *run.Node) ([]string, error) {
	if audiences, _ := n.Flags.GetStringSlice("api-audiences"); len(audiences) > 0 {
		return audiences, nil
	}
	return serviceAccountIssuers(n)
}
