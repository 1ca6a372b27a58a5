package main

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// clock is a time that the test moves.
type clock struct{ now time.Time }

func cores(n int64) amounts { return amounts{corev1.ResourceCPU: 1000 * n} }

// priced is one unit of money for a core, and ten for a namespace.
func priced() config {
	ten := 10.0
	return config{Prices: map[corev1.ResourceName]float64{corev1.ResourceCPU: 1}, Budget: &ten, Exempt: []string{"free"}}
}

func TestBudget(t *testing.T) {
	now := &clock{time.Unix(1000, 0)}
	l := newLedger(func() time.Time { return now.now })
	take := func(name string, n int64) verdict {
		return l.take(ask{"team", name, cores(n), true}, priced())
	}
	if v := take("a", 6); !v.admitted {
		t.Fatalf("%+v", v)
	}
	if v := take("b", 5); v.admitted || v.left != 10 || v.held != 6 {
		t.Errorf("beside a held pod: %+v", v)
	}
	if v := take("a", 6); !v.admitted || v.held != 0 {
		t.Errorf("the same request again: %+v", v)
	}
	l.store("team", "a", pod{"1", cores(6)})
	if v := take("b", 5); v.admitted || v.left != 4 || v.held != 0 {
		t.Errorf("beside a stored pod: %+v", v)
	}
	if v := take("b", 4); !v.admitted {
		t.Errorf("the whole rest: %+v", v)
	}
	if v := take("c", 1); v.admitted {
		t.Errorf("nothing is left: %+v", v)
	}
	if v := take("c", 0); !v.admitted {
		t.Errorf("a free pod: %+v", v)
	}
	now.now = now.now.Add(heldFor + time.Second)
	if v := take("c", 4); !v.admitted {
		t.Errorf("after b was not created: %+v", v)
	}
	l.remove("team", "a")
	if v := take("d", 7); v.admitted {
		t.Errorf("c is still held: %+v", v)
	}
	l.store("team", "c", pod{"2", cores(4)})
	l.store("team", "c", pod{"2", amounts{}}) // it has ended
	if v := take("d", 10); !v.admitted {
		t.Errorf("after all others ended: %+v", v)
	}
	if v := l.take(ask{"free", "a", cores(1000), true}, priced()); !v.admitted {
		t.Errorf("an exempt namespace: %+v", v)
	}
	if v := l.take(ask{"other", "a", cores(11), true}, priced()); v.admitted {
		t.Errorf("more than the budget: %+v", v)
	}
	if l.namespaces["other"] != nil {
		t.Error("a namespace without pods has an account")
	}
}

// TestANameIsUsedAgain: the successor of a pod is checked while the ledger still has the
// predecessor, and events of the predecessor do not release it.
func TestANameIsUsedAgain(t *testing.T) {
	l := newLedger(time.Now)
	l.store("team", "a", pod{"1", cores(2)})
	if v := l.take(ask{"team", "a", cores(11), true}, priced()); v.admitted {
		t.Error("the name of a stored pod avoids the check")
	}
	if v := l.take(ask{"team", "a", cores(9), true}, priced()); !v.admitted {
		t.Errorf("the predecessor counts: %+v", v)
	}
	l.store("team", "a", pod{"1", cores(2)})
	l.remove("team", "a")
	if v := l.take(ask{"team", "b", cores(2), true}, priced()); v.admitted {
		t.Error("an event of the predecessor released the successor")
	}
	l.store("team", "a", pod{"2", cores(9)})
	if v := l.take(ask{"team", "b", cores(1), true}, priced()); !v.admitted {
		t.Errorf("the successor counts twice: %+v", v)
	}
}

func TestADryRunHoldsNothing(t *testing.T) {
	l := newLedger(time.Now)
	for range 3 {
		if v := l.take(ask{"team", "a", cores(10), false}, priced()); !v.admitted {
			t.Fatalf("%+v", v)
		}
	}
	if len(l.namespaces) > 0 {
		t.Error("a dry run left an account")
	}
}

// TestConcurrentCreates: of many pods at once, exactly as many are admitted as fit.
func TestConcurrentCreates(t *testing.T) {
	l := newLedger(time.Now)
	var admitted sync.Map
	var running sync.WaitGroup
	for i := range 200 {
		running.Go(func() {
			name := fmt.Sprint("p", i)
			if l.take(ask{"team", name, cores(1), true}, priced()).admitted {
				admitted.Store(name, true)
				if i%2 == 0 { // the informer is quick for some
					l.store("team", name, pod{"1", cores(1)})
				}
			}
		})
	}
	running.Wait()
	count := 0
	admitted.Range(func(any, any) bool { count++; return true })
	if count != 10 {
		t.Errorf("%d pods of 1 fit into a budget of 10", count)
	}
}

func TestAmounts(t *testing.T) {
	container := func(cpu, memory string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{container("3", "1Gi")},
		Containers:     []corev1.Container{container("500m", "2Gi"), container("1", "1Gi")},
		Overhead:       corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}
	if a := amountsOf(p); a[corev1.ResourceCPU] != 3100 || a[corev1.ResourceMemory] != 3<<30 {
		t.Errorf("%v", a)
	}
	reduced, err := reduce(p)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := amountsOf(p), amountsOf(reduced.(*corev1.Pod)); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v, reduced %v", a, b)
	}
	p.Status.Phase = corev1.PodSucceeded
	if a := amountsOf(p); len(a) > 0 {
		t.Errorf("of an ended pod: %v", a)
	}
	huge := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("9e18", "9e18"), container("9e18", "9e18")}}}
	if a := amountsOf(huge); a[corev1.ResourceCPU] != maxAmount || a[corev1.ResourceMemory] != maxAmount {
		t.Errorf("of a huge pod: %v", a)
	}
	if cost := priced().cost(amountsOf(huge)); cost < 1e9 || math.IsInf(cost, 0) {
		t.Errorf("a huge pod costs %g", cost)
	}
}

func TestInvalidConfigs(t *testing.T) {
	for content, want := range map[string]string{
		"":                                      "prices: empty",
		"price: {}":                             "unknown field",
		"prices: {cpu: -1}":                     "prices.cpu: -1",
		"prices: {cpu: .nan}":                   "NaN",
		"prices: {cpu: 1}\nbudget: -1":          "budget: -1",
		"prices: {cpu: 1}\nbudget: x":           "budget",
		"prices: {cpu: 1}\nnamespaces: {a: -2}": "namespaces.a: -2",
	} {
		if _, err := parseConfig([][]byte{[]byte(content)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}
