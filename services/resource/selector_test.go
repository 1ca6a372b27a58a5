package resource

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// reference reports whether the selectors of apimachinery select the object.
func reference(t *testing.T, labelSelector, fieldSelector string, key Key, objectLabels, objectFields map[string]string) bool {
	t.Helper()
	byLabels, err := labels.Parse(labelSelector)
	if err != nil {
		t.Fatal(err)
	}
	byFields, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(objectFields)
	if all == nil {
		all = map[string]string{}
	}
	all["metadata.name"], all["metadata.namespace"] = key.Name, key.Namespace
	return byLabels.Matches(labels.Set(objectLabels)) && byFields.Matches(fields.Set(all))
}

// TestSelectorsMatchAsInApimachinery compares random selectors, with few and with many
// terms on the same and on different labels.
func TestSelectorsMatchAsInApimachinery(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	value := func() string {
		return fmt.Sprint([]any{"a", "b", "c", int64(math.MaxInt64), 3, 4, 5, 9, 0}[random.IntN(9)])
	}
	matched := 0
	for range 1000 {
		labelNames := 1 + random.IntN(12)
		label := func() string { return fmt.Sprint("l", random.IntN(labelNames)) }
		var byLabels, byFields []string
		for range random.IntN(1 + random.IntN(24)) {
			byLabels = append(byLabels, fmt.Sprintf([]string{"%s=%s", "%s!=%s", "%s in (%s,a,b)", "%s notin (%s,c)", "%s in (4,%s)",
				"%s%.0s", "!%s%.0s", "%s>4%.0s", "%s<5%.0s", "%s>0%.0s"}[random.IntN(10)], label(), value()))
		}
		for range random.IntN(3) {
			byFields = append(byFields, fmt.Sprintf([]string{"metadata.name%s%s", "metadata.namespace%s%s", "spec.x%s%s"}[random.IntN(3)],
				[]string{"=", "!="}[random.IntN(2)], value()))
		}
		labelSelector, fieldSelector := strings.Join(byLabels, ","), strings.Join(byFields, ",")
		s, err := ParseSelector(labelSelector, fieldSelector)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			objectLabels, objectFields := map[string]string{}, map[string]string{}
			for range random.IntN(2 * labelNames) {
				objectLabels[label()] = value()
			}
			if random.IntN(2) == 0 {
				objectFields["spec.x"] = value()
			}
			key := Key{Namespace: value(), Name: value()}
			got, want := s.Matches(key, objectLabels, objectFields), reference(t, labelSelector, fieldSelector, key, objectLabels, objectFields)
			if got != want {
				t.Fatalf("%q, %q: %v, %v, %v: %v, want %v", labelSelector, fieldSelector, key, objectLabels, objectFields, got, want)
			}
			if !got {
				continue
			}
			matched++
			for _, c := range s.LabelConditions(4) {
				if v, ok := objectLabels[c.Name]; !ok || c.Values != nil && !slices.Contains(c.Values, v) {
					t.Fatalf("%q: %v is selected and does not fulfil %v", labelSelector, objectLabels, c)
				}
			}
		}
	}
	if matched < 40 {
		t.Errorf("only %d matches: the test shows little", matched)
	}
}

func BenchmarkSelectorOfManyTerms(b *testing.B) {
	for _, terms := range []int{1, 4, 10000} {
		var text []string
		for i := range terms {
			text = append(text, fmt.Sprintf("l%d!=x", i))
		}
		s, err := ParseSelector(strings.Join(text, ","), "")
		if err != nil {
			b.Fatal(err)
		}
		set := map[string]string{"app": "web", "tier": "front", "l1": "a", "l2": "b", "l3": "c"}
		b.Run(fmt.Sprint(terms), func(b *testing.B) {
			for b.Loop() {
				if !s.Matches(Key{}, set, nil) {
					b.Fatal("not selected")
				}
			}
		})
	}
}
