package authfilters

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/validation"
	names "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// mode is a way to impersonate. In a constrained one the caller needs the right to impersonate the
// user, and the right to make this request while impersonating.
type mode string

const (
	associatedNode mode = "associated-node" // the node that the caller's pod is on
	arbitraryNode  mode = "arbitrary-node"
	account        mode = "serviceaccount"
	userInfo       mode = "user-info" // a user who is neither a node nor a service account
	plain          mode = "legacy"
)

// constrained lists the modes of a front door with constrained impersonation, in the order in which they
// are tried. Without it, plain is the only mode.
var constrained = []mode{associatedNode, arbitraryNode, account, userInfo, plain}

// verb returns the verb of the rights to impersonate, empty for plain impersonation.
func (m mode) verb() string {
	if m == plain {
		return ""
	}
	return "impersonate:" + string(m)
}

// on returns the verb of the right to make a request in the mode.
func (m mode) on(verb string) string { return "impersonate-on:" + string(m) + ":" + verb }

// applies reports whether the impersonation by a caller can be in this mode.
func (m mode) applies(v vocabulary.Vocabulary, im *impersonation, caller services.UserInfo) bool {
	switch m {
	case associatedNode:
		if im.node == "" || !im.onlyUser() || !slices.Equal(caller.Extra[v.Qualified("authentication", "node-name")], []string{im.node}) {
			return false
		}
		_, name := serviceAccount(caller.Name)
		return name != ""
	case arbitraryNode:
		return im.node != "" && im.onlyUser()
	case account:
		return im.account != "" && im.onlyUser()
	case userInfo:
		return im.node == "" && im.account == ""
	}
	return true
}

// caller returns the caller as the questions to authz name it. The right to impersonate the node that one is
// on must not depend on the node: of the extra values of such a caller only the keys are left.
func (m mode) caller(v vocabulary.Vocabulary, caller services.UserInfo) services.UserInfo {
	if m == associatedNode {
		caller.Extra = map[string][]string{v.Qualified("authentication", "associated-node-keys"): slices.Sorted(maps.Keys(caller.Extra))}
	}
	return caller
}

// nodeAgent returns the node of the username of its agent, empty for any other username.
func nodeAgent(user string) string {
	node, ok := strings.CutPrefix(user, services.UserNodeStart)
	if !ok || len(validation.NameIsDNSSubdomain(node, false)) > 0 {
		return ""
	}
	return node
}

// unusualExtra returns why a key and its values cannot be impersonated in a constrained mode, empty
// if they can.
func unusualExtra(key string, values []string) string {
	if key == "" {
		return "impersonating the empty string key in extra is not allowed"
	}
	if err := names.IsDomainPrefixedPath(field.NewPath("extra", "key"), key).ToAggregate(); err != nil {
		return "impersonating an invalid key in extra is not allowed: " + err.Error()
	}
	switch {
	case key != strings.ToLower(key):
		return fmt.Sprintf("impersonating a non-lowercase key in extra is not allowed: %q", key)
	case len(values) == 0:
		return "impersonating empty values in extra is not allowed"
	case slices.Contains(values, ""):
		return "impersonating the empty string value in extra is not allowed"
	}
	return ""
}

// Constrained is constrained impersonation (KEP-5284). It remembers the mode in which each caller has
// last succeeded: it is tried first, so that plain impersonation asks no more than without it.
type Constrained struct {
	last     *lru.Cache[[sha256.Size]byte, mode]
	attempts *prometheus.CounterVec
}

// callersKept is the maximum number of remembered callers. The least recently seen are forgotten.
const callersKept = 10_000

// NewConstrained returns constrained impersonation that knows no callers; nil if it is off.
func NewConstrained(on bool, metrics prometheus.Registerer) *Constrained {
	if !on {
		return nil
	}
	last, err := lru.New[[sha256.Size]byte, mode](callersKept)
	if err != nil {
		panic(err) // the number is positive
	}
	i := &Constrained{last: last, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_impersonation_attempts_total",
		Help: "Requests that impersonate, by mode (empty for refused ones) and decision."}, []string{"mode", "decision"})}
	metrics.MustRegister(i.attempts)
	return i
}

// modes returns the modes to try for a caller, in order.
func (i *Constrained) modes(caller string) []mode {
	if i == nil {
		return []mode{plain}
	}
	first, ok := i.last.Get(sha256.Sum256([]byte(caller)))
	if !ok {
		return constrained
	}
	list := []mode{first}
	for _, m := range constrained {
		if m != first {
			list = append(list, m)
		}
	}
	return list
}

// note counts an impersonation and, if it is allowed, remembers its mode.
func (i *Constrained) note(caller string, m mode, allowed bool) {
	switch {
	case i == nil:
	case allowed:
		i.attempts.WithLabelValues(string(m), "allowed").Inc()
		i.last.Add(sha256.Sum256([]byte(caller)), m)
	default:
		i.attempts.WithLabelValues("", "denied").Inc()
	}
}
