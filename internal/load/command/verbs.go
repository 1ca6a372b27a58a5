package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/kit/run"
)

// verb is one kind of request.
type verb string

// The verbs of a load.
const (
	get        verb = "get"
	list       verb = "list"
	create     verb = "create"
	update     verb = "update"
	patch      verb = "patch"
	applied    verb = "apply"
	deleteVerb verb = "delete"
)

// verbs returns all verbs, in the order of the report.
func verbs() []verb { return []verb{get, list, create, update, patch, applied, deleteVerb} }

// weighted is a verb and its share of all requests.
type weighted struct {
	verb  verb
	share int
}

// maxShare bounds a share, so that sums of shares do not overflow.
const maxShare = 1_000_000

// parseVerbs reads verbs with their shares, as in get=4,list=1. A verb without a share has one of 1.
func parseVerbs(text string) (all []weighted, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, share, given := strings.Cut(strings.TrimSpace(part), "=")
		w := weighted{verb: verb(name), share: 1}
		if given {
			if w.share, err = strconv.Atoi(share); err != nil || w.share < 1 || w.share > maxShare {
				return nil, run.Usagef("--verbs: the share of %s is %q, not a number from 1 to %d", name, share, maxShare)
			}
		}
		if !slices.Contains(verbs(), w.verb) {
			return nil, run.Usagef("--verbs: unknown verb %q: use %v", name, verbs())
		}
		if slices.ContainsFunc(all, func(other weighted) bool { return other.verb == w.verb }) {
			return nil, run.Usagef("--verbs: %s is specified twice", name)
		}
		all = append(all, w)
	}
	return all, nil
}

// mix gives verbs in their shares, evenly.
type mix struct {
	verbs     []weighted
	sum, step int
}

func newMix(all []weighted) mix {
	m := mix{verbs: all}
	for _, w := range all {
		m.sum += w.share
	}
	// A step without a common divisor reaches every position; the golden ratio spreads them.
	for m.step = max(1, m.sum*618/1000); gcd(m.step, m.sum) != 1; m.step++ {
		continue
	}
	return m
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// verb returns the verb of a turn.
func (m mix) verb(turn int64) verb {
	position := int(turn%int64(m.sum)) * m.step % m.sum
	for _, w := range m.verbs {
		if position -= w.share; position < 0 {
			return w.verb
		}
	}
	return m.verbs[0].verb
}

// filled returns how many objects a load of these verbs begins with: as many as it may have at a
// time, half of it if their number changes, and none if objects are only created.
func (p *plan) filled() int {
	changing := slices.ContainsFunc(p.verbs, func(w weighted) bool { return w.verb == create || w.verb == deleteVerb })
	switch {
	case len(p.verbs) == 1 && p.verbs[0].verb == create:
		return 0
	case changing:
		return p.objects / 2
	}
	return p.objects
}
