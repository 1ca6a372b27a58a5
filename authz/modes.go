package authz

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
)

// The modes of --authorization-mode.
const (
	modeRBAC        = "RBAC"
	modeNode        = "Node"
	modeWebhook     = "Webhook"
	modeABAC        = "ABAC"
	modeAlwaysAllow = "AlwaysAllow"
	modeAlwaysDeny  = "AlwaysDeny"
)

// allModes are the modes in alphabetical order.
var allModes = []string{modeABAC, modeAlwaysAllow, modeAlwaysDeny, modeNode, modeRBAC, modeWebhook}

func flags(fs *pflag.FlagSet) {
	fs.StringSlice("authorization-mode", []string{modeRBAC}, "authorization modes, tried in order until one allows or denies: "+strings.Join(allModes, ", ")+"; with AlwaysAllow, requests without credentials get 401")
	fs.String("authorization-config", "", "`file` with an AuthorizationConfiguration, instead of --authorization-mode and --authorization-webhook-*; read again when it changes")
	fs.String("authorization-policy-file", "", "`file` with policies for mode ABAC, one JSON object in each line")
	fs.String("authorization-webhook-config-file", "", "kubeconfig `file` of the remote service for mode Webhook")
	fs.String("authorization-webhook-version", "v1beta1", "version of the SubjectAccessReview for mode Webhook: v1 or v1beta1")
	fs.Duration("authorization-webhook-cache-authorized-ttl", 5*time.Minute, "how long mode Webhook caches allowed decisions")
	fs.Duration("authorization-webhook-cache-unauthorized-ttl", 30*time.Second, "how long mode Webhook caches denied decisions")
}

// settings are the values of the flags.
type settings struct {
	configFile    string
	modes         []string
	policyFile    string
	webhookFile   string
	webhookFormat string
	allowedTTL    time.Duration
	deniedTTL     time.Duration
}

// parse reads and checks the flags. Its errors are usage errors that name the flag.
func parse(fs *pflag.FlagSet) (s settings, err error) {
	s.configFile, _ = fs.GetString("authorization-config")
	s.modes, _ = fs.GetStringSlice("authorization-mode")
	s.policyFile, _ = fs.GetString("authorization-policy-file")
	s.webhookFile, _ = fs.GetString("authorization-webhook-config-file")
	s.webhookFormat, _ = fs.GetString("authorization-webhook-version")
	s.allowedTTL, _ = fs.GetDuration("authorization-webhook-cache-authorized-ttl")
	s.deniedTTL, _ = fs.GetDuration("authorization-webhook-cache-unauthorized-ttl")
	if s.configFile != "" {
		return s, alone(fs)
	}
	if len(s.modes) == 0 {
		return s, run.Usagef("--authorization-mode: at least one mode is required")
	}
	for i, m := range s.modes {
		switch {
		case !slices.Contains(allModes, m):
			return s, run.Usagef("--authorization-mode: %q is not a valid mode: must be one of %s", m, strings.Join(allModes, ", "))
		case slices.Contains(s.modes[:i], m):
			return s, run.Usagef("--authorization-mode: has mode %q more than once", m)
		}
	}
	if err := s.needs(modeABAC, "--authorization-policy-file", s.policyFile); err != nil {
		return s, err
	}
	return s, s.needs(modeWebhook, "--authorization-webhook-config-file", s.webhookFile)
}

// alone returns an error if --authorization-config is given together with a flag that it
// replaces.
func alone(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		if f.Name == "authorization-mode" || strings.HasPrefix(f.Name, "authorization-webhook-") {
			err = run.Usagef("--authorization-config: cannot be used together with --%s", f.Name)
		}
	})
	return err
}

// needs returns an error unless the file of a mode is given exactly if the mode is on.
func (s settings) needs(mode, flag, file string) error {
	switch on := slices.Contains(s.modes, mode); {
	case on && file == "":
		return run.Usagef("%s: is required for mode %s", flag, mode)
	case !on && file != "":
		return run.Usagef("%s: cannot be used without mode %s", flag, mode)
	}
	return nil
}

// unrestricted reports whether a user may do everything in any mode.
func unrestricted(u services.UserInfo) bool { return slices.Contains(u.Groups, services.GroupMasters) }

// always marks a decision that depends on no stored object and on no name.
func always(d services.Decision) services.Decision {
	d.Revision, d.AnyName = math.MaxInt64, true
	return d
}

func everything() services.Rules {
	any := []string{"*"}
	return services.Rules{
		Resource:    []services.ResourceRule{{Verbs: any, APIGroups: any, Resources: any}},
		NonResource: []services.NonResourceRule{{Verbs: any, Paths: any}},
	}
}

// join joins what several modes say.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// constant is a mode with the same answer to every request.
type constant bool

// Authorize implements services.Authz.
func (allow constant) Authorize(context.Context, services.Attributes) (services.Decision, error) {
	if allow {
		return always(services.Decision{Allowed: true, Reason: "everything is allowed"}), nil
	}
	return always(services.Decision{Reason: "Everything is forbidden."}), nil
}

// Rules implements services.Authz.
func (allow constant) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	if allow {
		return everything(), nil
	}
	return services.Rules{}, nil
}

var _ services.Authz = constant(false)
