package cel_test

import (
	"context"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/cel"
)

// FuzzMatch compiles and evaluates arbitrary expressions. Whatever they are, there is an
// answer in bounded time, and what is accepted as new can be compiled when it is stored.
func FuzzMatch(f *testing.F) {
	for _, source := range []string{
		`object.spec.list.all(x, x < 4)`, `authorizer.requestResource.check('get').allowed()`, `object.spec.ratio * 1e308 > 0.0`,
		`'a'.matches('(a+)+$')`, `[1, 'a'].exists(x, x == 1)`, `optional.of(1).hasValue()`, `object.?a[?'b'].orValue(true)`,
		`duration('1h') > duration('1s')`, `b'\377' == b''`, `quantity('9999999999Ei').isInteger()`, `cidr('::/0').containsIP('::1')`,
		`"%s %d %.3f".format(['a', 1, 2.5]) != ''`, `{}.transformMap(k, v, k) == {}`, `object == oldObject`,
	} {
		f.Add(source, `{"spec":{"list":[1,2,3]}}`)
	}
	e := engine(f, &rights{})
	f.Fuzz(func(t *testing.T, source, object string) {
		r := update()
		r.Object = []byte(object)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		accepted := e.CheckMatch(source)
		matches, err := e.Match(ctx, []cel.MatchCondition{{Name: "only", Expression: source}}, e.Request(r))
		if matches && (err != nil || accepted != nil && e.CheckMatch(source) == nil) {
			t.Errorf("%q matches: %v", source, err)
		}
		if ctx.Err() != nil {
			t.Errorf("%q takes too long", source)
		}
	})
}
