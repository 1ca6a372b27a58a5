package tolerations

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// forever means a toleration without a time limit.
const forever = math.MaxInt64

// identity is a toleration in a form that can be compared.
type identity struct {
	toleration corev1.Toleration // without its seconds
	seconds    int64
}

func identityOf(t corev1.Toleration) identity {
	id := identity{t, forever}
	if t.TolerationSeconds != nil {
		id.seconds, id.toleration.TolerationSeconds = *t.TolerationSeconds, nil
	}
	return id
}

// reach is what a toleration matches. A toleration tolerates all that another does when
// it has one of the reaches that cover the other, for at least its time.
type reach struct {
	key    string
	effect corev1.TaintEffect
	exists bool
	value  string // of Equal
}

// reachOf returns the reach of a toleration; false when its operator is unknown.
func reachOf(t corev1.Toleration) (reach, bool) {
	switch t.Operator {
	case corev1.TolerationOpExists:
		return reach{key: t.Key, effect: t.Effect, exists: true}, true
	case corev1.TolerationOpEqual, "":
		return reach{key: t.Key, effect: t.Effect, value: t.Value}, true
	}
	return reach{}, false
}

// index are tolerations by their reach, with the longest time of each. It finds what
// covers a toleration without a comparison with each other one.
type index map[reach]int64

func (x index) add(t corev1.Toleration) {
	r, ok := reachOf(t)
	if !ok {
		return
	}
	seconds := int64(forever)
	if t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil {
		seconds = *t.TolerationSeconds
	}
	if known, ok := x[r]; !ok || known < seconds {
		x[r] = seconds
	}
}

// covers reports whether a toleration in the index tolerates all that t does.
func (x index) covers(t corev1.Toleration) bool {
	seconds := identityOf(t).seconds
	for _, effect := range []corev1.TaintEffect{t.Effect, ""} {
		reaches := []reach{{key: t.Key, effect: effect, exists: true}, {effect: effect, exists: true}}
		if t.Operator == corev1.TolerationOpEqual {
			reaches = append(reaches, reach{key: t.Key, effect: effect, value: t.Value})
		}
		for _, r := range reaches {
			if longest, ok := x[r]; ok && seconds <= longest {
				return true
			}
		}
	}
	return false
}

// merged returns both lists of tolerations without those that another covers. Of equal
// ones the first stays, of those that cover each other the last.
func merged(first, second []corev1.Toleration) []corev1.Toleration {
	var all []corev1.Toleration
	seen := map[identity]bool{}
	for _, t := range slices.Concat(first, second) {
		if id := identityOf(t); !seen[id] {
			seen[id] = true
			all = append(all, t)
		}
	}
	later, covered := index{}, make([]bool, len(all))
	for i, t := range slices.Backward(all) {
		covered[i] = later.covers(t)
		later.add(t)
	}
	kept, earlier := all[:0:0], index{}
	for i, t := range all {
		if !covered[i] && !earlier.covers(t) {
			kept = append(kept, t)
			earlier.add(t)
		}
	}
	return kept
}

// allowed reports whether each toleration is in a whitelist or covered by one in it. An
// empty whitelist allows all.
func allowed(all, whitelist []corev1.Toleration) bool {
	if len(whitelist) == 0 {
		return true
	}
	exact, known := map[identity]bool{}, index{}
	for _, t := range whitelist {
		exact[identityOf(t)] = true
		known.add(t)
	}
	return !slices.ContainsFunc(all, func(t corev1.Toleration) bool { return !exact[identityOf(t)] && !known.covers(t) })
}
