package cel

import (
	"fmt"
	"strings"
	"testing"

	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// The cache keeps what was used last, and never more than its limit.
func TestProgramsAreBounded(t *testing.T) {
	p := newPrograms(1000)
	compiled := map[string]int{}
	use := func(source string) {
		p.get(programKey{source: source}, func() admissioncel.CompilationResult {
			compiled[source]++
			return admissioncel.CompilationResult{}
		})
		if p.held > p.most {
			t.Fatalf("%d bytes are held", p.held)
		}
	}
	for i := range 100 {
		use("often")
		use(fmt.Sprint("once ", i))
	}
	if compiled["often"] != 1 || p.known.Len() < 5 || p.known.Len() > 20 {
		t.Errorf("compiled %d times, %d are known", compiled["often"], p.known.Len())
	}
	held := p.held
	use(strings.Repeat("x", 2000))
	if p.held != held || compiled["often"] != 1 {
		t.Error("a source that is larger than the cache displaced others")
	}
}

// Expressions with the same source and other variables are other programs.
func TestProgramsAreKeyedByVariables(t *testing.T) {
	e, err := New(Config{Release: "1.36"})
	if err != nil {
		t.Fatal(err)
	}
	if e.compiled(condition("authorizer != null || true"), variables{}).Error == nil {
		t.Error("the variable authorizer is not declared, but known")
	}
	if result := e.compiled(condition("authorizer.path('/a').check('get').allowed()"), variables{authorizer: true}); result.Error != nil {
		t.Error(result.Error)
	}
	if e.compiled(condition("authorizer.path('/a').check('get').allowed()"), variables{}).Error == nil {
		t.Error("a program with more variables is used")
	}
}
