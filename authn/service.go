// Package authn is the service that finds out who makes a request. It decides
// which credentials prove which identity, by asking the methods that flags turn
// on, one after the other. It never decides what a user may do, writes nothing,
// and knows no secret longer than it needs to compare it. It serves section
// "Authentication" of the specification.
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
		About:  "finds out who makes a request",
		Offers: []run.Dependency{contract.Authn},
		Needs:  []run.Dependency{contract.Store},
		Flags:  flags,
		Start:  start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	methods, err := methods(ctx, n, time.Now)
	if err != nil {
		return err
	}
	anonymous, _ := n.Flags.GetBool("anonymous-auth")
	contract.Authn.Offer(n, &chain{methods: methods, audiences: apiAudiences(n), anonymous: anonymous, log: n.Log})
	return nil
}

func flags(fs *pflag.FlagSet) {
	fs.StringArray("token-auth-file", nil, "CSV file of static tokens: token,user,uid,\"group1,group2\"; may be given more than once")
	fs.StringArray("client-ca-file", nil, "PEM file of the authorities whose client certificates name users; may be given more than once")
	fs.Bool("anonymous-auth", true, "take requests without credentials for system:anonymous; otherwise they get 401")
	fs.Bool("enable-bootstrap-token-auth", false, "accept bootstrap tokens, kept as secrets in the system namespace")

	fs.StringArray("service-account-key-file", nil, "PEM file of keys that service account tokens are signed with (public or private); may be given more than once; the server's TLS key when absent")
	fs.Bool("service-account-lookup", true, "refuse service account tokens whose account or secret is gone")
	fs.String("service-account-issuer", "", "issuer of bound service account tokens; a name of this API when empty")
	fs.StringSlice("api-audiences", nil, "audiences that this API answers to; the service account issuer when empty")

	fs.String("oidc-issuer-url", "", "https URL of the OpenID Connect issuer whose id tokens are accepted")
	fs.String("oidc-client-id", "", "client id that all id tokens must be issued for")
	fs.String("oidc-username-claim", "sub", "claim that is the user name")
	fs.String("oidc-username-prefix", "", "what stands before user names; <issuer-url># when empty and the claim is not email; - for nothing")
	fs.String("oidc-groups-claim", "", "claim that is the list of groups")
	fs.String("oidc-groups-prefix", "", "what stands before group names")
	fs.StringToString("oidc-required-claim", nil, "key=value that an id token must hold; may be given more than once")
	fs.String("oidc-ca-file", "", "PEM file of the authorities of the issuer's web certificate; the host's when empty")

	fs.String("authentication-token-webhook-config-file", "", "kubeconfig file of the remote service that checks bearer tokens")
	fs.Duration("authentication-token-webhook-cache-ttl", 2*time.Minute, "how long its answers are reused")
	fs.String("authentication-token-webhook-version", "v1beta1", "version of the TokenReview it is sent: v1 or v1beta1, alone or with the group")

	fs.String("requestheader-client-ca-file", "", "PEM file of the authorities whose client certificates name trusted proxies")
	fs.StringSlice("requestheader-allowed-names", nil, "common names of trusted proxies; any when empty")
	fs.StringSlice("requestheader-username-headers", nil, "headers in which a proxy names the user, in order")
	fs.StringSlice("requestheader-group-headers", nil, "headers in which a proxy names groups")
	fs.StringSlice("requestheader-extra-headers-prefix", nil, "prefixes of headers in which a proxy gives extra attributes")
	expiry.Flags(fs, expiry.Authorities, "client-ca-file", "requestheader-client-ca-file", "oidc-ca-file")
}
