// Package authn is the service that authenticates requests. It calls the methods that
// flags turn on, in order, and returns the user of the first that succeeds. It does not
// authorize, and writes nothing. It serves section "Authentication" of the specification.
package authn

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
)

// Service describes authn to the kit.
func Service() run.Service {
	return run.Service{
		Name:   "authn",
		About:  "authenticates requests",
		Offers: []run.Dependency{contract.Authn},
		Needs:  []run.Dependency{contract.Store},
		Flags:  flags,
		Start:  start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	file, err := fileOf(n, time.Now)
	if err != nil {
		return err
	}
	methods, err := methods(ctx, n, file, time.Now)
	if err != nil {
		return err
	}
	audiences, err := apiAudiences(n)
	if err != nil {
		return err
	}
	a := &chain{methods: methods, audiences: audiences, anonymous: anonymousOf(n.Flags, file), log: n.Log}
	if lookup, _ := n.Flags.GetBool("revocation-lookup"); lookup {
		store, err := contract.Store.Use(ctx, n)
		if err != nil {
			return err
		}
		a.revoked = &revocations{store: store, log: n.Log}
		n.Go("reading revocations", a.revoked.run)
	}
	contract.Authn.Offer(n, a)
	return nil
}

func flags(fs *pflag.FlagSet) {
	fs.StringArray("token-auth-file", nil, "CSV file of static tokens: token,user,uid,\"group1,group2\"; may be given more than once")
	fs.StringArray("client-ca-file", nil, "PEM file of the authorities of users' client certificates; may be given more than once")
	fs.Bool("anonymous-auth", true, "treat requests without credentials as system:anonymous; otherwise they get 401")
	fs.StringSlice("authorization-mode", []string{"RBAC"}, "authorization modes, tried in order until one allows or denies: ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook; with AlwaysAllow, requests without credentials get 401")
	fs.Bool("revocation-lookup", true, "refuse credentials that a Revocation names; set false if all administrators have been revoked")
	fs.Bool("enable-bootstrap-token-auth", false, "accept bootstrap tokens, which are Secrets in the system namespace")

	fs.StringArray("service-account-key-file", nil, "PEM file of keys (public or private) of service account tokens; may be given more than once; default: the server's TLS key")
	fs.Bool("service-account-lookup", true, "reject service account tokens whose account, Secret or Pod was deleted")
	fs.StringArray("service-account-issuer", nil, "issuer of bound service account tokens; if empty, a default of the vocabulary; if given more than once, the first one issues tokens and the tokens of all are accepted")
	fs.StringSlice("api-audiences", nil, "audiences of this API; if empty, the service account issuers")

	oidcFlags(fs)

	fs.String("authentication-token-webhook-config-file", "", "kubeconfig file of the remote service that checks bearer tokens")
	fs.Duration("authentication-token-webhook-cache-ttl", 2*time.Minute, "how long responses of the token webhook are cached")
	fs.String("authentication-token-webhook-version", "v1beta1", "version of the TokenReview for the token webhook: v1 or v1beta1, with or without the group")

	fs.String("requestheader-client-ca-file", "", "PEM file of the authorities of trusted proxies' client certificates")
	fs.StringSlice("requestheader-allowed-names", nil, "common names of trusted proxies; if empty, any")
	fs.StringSlice("requestheader-username-headers", nil, "headers with the user name from a proxy, in order")
	fs.StringSlice("requestheader-group-headers", nil, "headers with groups from a proxy")
	fs.StringSlice("requestheader-extra-headers-prefix", nil, "prefixes of headers with extra attributes from a proxy")
	expiry.Flags(fs, expiry.Authorities, "client-ca-file", "requestheader-client-ca-file", "oidc-ca-file")
}
