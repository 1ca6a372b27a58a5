package issuer

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

const (
	maxExpirationFlag    = "service-account-max-token-expiration"
	extendExpirationFlag = "service-account-extend-token-expiration"
	// shortestMax and longestMax bound --service-account-max-token-expiration.
	shortestMax, longestMax = time.Hour, 1 << 32 * time.Second
	// transitional is the lifetime in the requests of nodes for tokens that replace those of
	// Secrets, whose clients may not read them again in time. Extended tokens are valid
	// for the time extended.
	transitional, extended = (3600 + 7) * time.Second, 365 * 24 * time.Hour
)

// Lifetimes bounds and extends how long tokens are valid.
type Lifetimes struct {
	// Max is the maximum lifetime that a request gets; 0 for no limit.
	Max time.Duration
	// Extend is true if tokens of pods with the transitional lifetime are valid for longer,
	// with a warning time.
	Extend bool
}

func registerLifetimes(fs *pflag.FlagSet) {
	fs.Duration(maxExpirationFlag, 0, "maximum lifetime of requested service account tokens, 1h to 2^32 s; longer requests are reduced to it; 0 for no limit")
	fs.Bool(extendExpirationFlag, true, "make tokens that kubelets request for pods with the lifetime 3607 s valid for a year, because old clients do not reload them; each use after 3607 s gets an audit annotation and is counted")
}

// readLifetimes returns what the flags say, and logs what they do not achieve together.
func readLifetimes(fs *pflag.FlagSet, log *slog.Logger) (l Lifetimes, err error) {
	l.Max, _ = fs.GetDuration(maxExpirationFlag)
	l.Extend, _ = fs.GetBool(extendExpirationFlag)
	if l.Max == 0 {
		return l, nil
	}
	if l.Max < shortestMax || l.Max > longestMax {
		return l, run.Usagef("--%s: %v is not between %v and 2^32 s", maxExpirationFlag, l.Max, shortestMax)
	}
	switch {
	case l.Extend && l.Max < transitional:
		log.Warn("no token is extended: the maximum is below the lifetime that kubelets request", "flag", "--"+maxExpirationFlag, "value", l.Max, "requested", transitional)
	case l.Extend && l.Max < extended:
		log.Warn("extended tokens are valid for longer than the maximum", "flag", "--"+maxExpirationFlag, "value", l.Max, "extended", extended)
	}
	return l, nil
}

// Bound returns the lifetime that a request for the given one gets, in seconds.
func (l Lifetimes) Bound(seconds int64) int64 {
	if most := int64(l.Max / time.Second); most > 0 && seconds > most {
		return most
	}
	return seconds
}

// Validity returns how long a token with a lifetime in seconds is valid, and after how long
// its client should have replaced it, if that is earlier, else 0. Only tokens of pods are
// extended.
func (l Lifetimes) Validity(seconds int64, ofPod bool) (valid, warnAfter time.Duration) {
	valid = time.Duration(seconds) * time.Second
	if l.Extend && ofPod && valid == transitional {
		return extended, valid
	}
	return valid, 0
}
