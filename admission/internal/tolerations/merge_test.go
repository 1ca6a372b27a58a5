package tolerations

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// covers is the definition: whether a tolerates all that b does.
func covers(a, b corev1.Toleration) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	everyKey := a.Key == "" && a.Operator == corev1.TolerationOpExists
	if a.Key != b.Key && !everyKey || a.Effect != b.Effect && a.Effect != "" {
		return false
	}
	if a.Effect == corev1.TaintEffectNoExecute && a.TolerationSeconds != nil && (b.TolerationSeconds == nil || *b.TolerationSeconds > *a.TolerationSeconds) {
		return false
	}
	return a.Operator == corev1.TolerationOpExists ||
		(a.Operator == corev1.TolerationOpEqual || a.Operator == "") && b.Operator == corev1.TolerationOpEqual && a.Value == b.Value
}

// mergedSlowly compares each toleration with each other one.
func mergedSlowly(first, second []corev1.Toleration) (kept []corev1.Toleration) {
	all := slices.Concat(first, second)
	for i, t := range all {
		redundant := slices.ContainsFunc(kept, func(k corev1.Toleration) bool { return covers(k, t) }) ||
			slices.ContainsFunc(all[i+1:], func(l corev1.Toleration) bool { return !equality.Semantic.DeepEqual(l, t) && covers(l, t) })
		if !redundant {
			kept = append(kept, t)
		}
	}
	return kept
}

func some(random *rand.Rand) []corev1.Toleration {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	all := make([]corev1.Toleration, random.IntN(6))
	for i := range all {
		all[i] = corev1.Toleration{Key: one("", "a", "b"), Operator: corev1.TolerationOperator(one("", "Equal", "Exists", "Other")), Value: one("", "x"),
			Effect: corev1.TaintEffect(one("", "NoSchedule", "NoExecute"))}
		if all[i].Operator == corev1.TolerationOpExists {
			all[i].Value = "" // it has none in any valid pod
		}
		if seconds := int64(random.IntN(3)); seconds > 0 && all[i].Effect == corev1.TaintEffectNoExecute {
			all[i].TolerationSeconds = &seconds
		}
	}
	return all
}

// TestAgreesWithTheDefinition: the index finds what a comparison of all with all finds.
func TestAgreesWithTheDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		first, second := some(random), some(random)
		if got, want := merged(first, second), mergedSlowly(first, second); fmt.Sprint(got) != fmt.Sprint(want) && !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("%+v and %+v:\n%+v, want\n%+v", first, second, got, want)
		}
		want := len(second) == 0 || !slices.ContainsFunc(first, func(f corev1.Toleration) bool {
			return !slices.ContainsFunc(second, func(s corev1.Toleration) bool { return covers(s, f) })
		})
		if got := allowed(first, second); got != want {
			t.Fatalf("%+v in %+v: %v", first, second, got)
		}
	}
}

func TestInvalid(t *testing.T) {
	five := int64(5)
	for _, x := range []struct {
		toleration corev1.Toleration
		field      string
	}{
		{corev1.Toleration{Key: "a", Value: "x", Effect: "NoSchedule"}, ""},
		{corev1.Toleration{Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &five}, ""},
		{corev1.Toleration{Key: "a b", Operator: "Exists"}, "key"},
		{corev1.Toleration{Value: "x"}, "operator"},
		{corev1.Toleration{Key: "a", Operator: "Is"}, "operator"},
		{corev1.Toleration{Key: "a", Operator: "Exists", Value: "x"}, "operator"},
		{corev1.Toleration{Key: "a", Value: strings.Repeat("x", 64)}, "value"},
		{corev1.Toleration{Key: "a", Effect: "No"}, "effect"},
		{corev1.Toleration{Key: "a", TolerationSeconds: &five}, "effect"},
	} {
		if field, why := invalid(x.toleration); field != x.field || (why == "") != (field == "") {
			t.Errorf("%+v: %s: %s", x.toleration, field, why)
		}
	}
}
