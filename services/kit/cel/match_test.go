package cel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/release"
)

// rights is an authz that allows ann to delete pods, and counts calls.
type rights struct {
	services.Authz
	mu    sync.Mutex
	calls []services.Attributes
	err   error
}

func (r *rights) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, a)
	allowed := (a.User.Name == "ann" && a.Verb == "delete" && a.Resource == "pods") || a.Path == "/healthz" ||
		a.User.Name == "system:serviceaccount:shop:robot" || a.FieldSelector == "spec.nodeName=a" && a.LabelSelector == "b in (c)"
	return services.Decision{Allowed: allowed, Reason: "a role says so"}, r.err
}

func engine(authz services.Authz) *cel.Engine {
	return cel.New(cel.Config{Release: release.V136, Authz: authz})
}

func update() services.AdmissionRequest {
	return services.AdmissionRequest{
		Operation: services.OperationUpdate, Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web",
		User:      services.UserInfo{Name: "ann", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"scopes": {"a", "b"}}},
		Object:    []byte(`{"metadata":{"name":"web","labels":{"a/b":"c"}},"spec":{"replicas":3,"ratio":0.5,"list":[1,2,3],"at":"2024-05-06T07:08:09Z"}}`),
		OldObject: []byte(`{"metadata":{"name":"web"},"spec":{"replicas":2}}`),
		Options:   []byte(`{"kind":"UpdateOptions","apiVersion":"meta/v1","fieldManager":"me"}`),
	}
}

func conditions(sources ...string) (list []cel.MatchCondition) {
	for i, source := range sources {
		list = append(list, cel.MatchCondition{Name: fmt.Sprint("c", i), Expression: source})
	}
	return list
}

// Each expression is true.
func TestVariables(t *testing.T) {
	e := engine(&rights{})
	r := e.Request(update())
	for _, source := range []string{
		`object.spec.replicas == oldObject.spec.replicas + 1`,
		`object.spec.ratio < 1`,
		`object.spec.list.all(x, x < 4)`,
		`object.metadata.labels['a/b'] == 'c'`,
		`!has(object.metadata.annotations)`,
		`object.?spec.?missing.orValue(5) == 5`,
		`timestamp(object.spec.at) < timestamp('2025-01-01T00:00:00Z')`,
		`request.kind.kind == 'Deployment' && request.kind.group == 'apps' && request.resource.resource == 'deployments'`,
		`request.requestKind == request.kind && !has(request.subResource)`,
		`request.name == 'web' && request.namespace == 'shop' && request.operation == 'UPDATE' && !request.dryRun`,
		`request.userInfo.username == 'ann' && 'dev' in request.userInfo.groups && request.userInfo.extra['scopes'] == ['a', 'b']`,
		`request.options.fieldManager == 'me'`,
		`namespaceObject == null`,
		`authorizer.group('').resource('pods').namespace('shop').check('delete').allowed()`,
		`!authorizer.group('').resource('nodes').check('delete').allowed()`,
		`authorizer.group('').resource('pods').fieldSelector('spec.nodeName==a').labelSelector('b in (c)').check('list').allowed()`,
		`!authorizer.group('').resource('pods').labelSelector('b in (c)').check('list').allowed()`,
		`authorizer.path('/healthz').check('get').allowed()`,
		`authorizer.serviceAccount('shop', 'robot').group('').resource('nodes').check('get').allowed()`,
		`authorizer.requestResource.check('delete').reason() == 'a role says so'`,
		`quantity('1Gi').isGreaterThan(quantity('500Mi'))`,
		`url('https://a.example/b').getHost() == 'a.example'`,
		`'abc'.find('b.') == 'bc'`,
		`ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.0.0.1')`,
		`semver('1.2.3').isLessThan(semver('1.3.0'))`,
		`sets.contains([1, 2], [2])`,
		`{'a': 1}.all(k, v, v == 1)`,
		`'banana'.replace('a', 'oo') == 'boonoonoo' && 'banana'.replace('a', '', 2) == 'bnna' && 'ab'.replace('', '-') == '-a-b-' && 'aa'.replace('a', 'b', 0) == 'aa'`,
		`['a', '', 'b'].join('-') == 'a--b' && ['', 'a'].join('-') == '-a' && ['a', 'b'].join() == 'ab' && [].join('-') == ''`,
		`!format.dns1123Label().validate('web').hasValue()`,
		`'%s is %d, %.2f, %x, %s, %s'.format(['a', 1, 2.5, 'z', [1, 'b'], {'c': true}]) == 'a is 1, 2.50, 7a, [1, "b"], {"c":true}'`,
		`quantity('1.5Gi').isGreaterThan(quantity('1500M')) && isQuantity('100m') && !isQuantity('a')`,
	} {
		if matches, err := e.Match(t.Context(), conditions(source), r); !matches || err != nil {
			t.Errorf("%s: %v, %v", source, matches, err)
		}
	}
}

func TestMatch(t *testing.T) {
	const fails = `object.missing.field == 1`
	for name, x := range map[string]struct {
		conditions []cel.MatchCondition
		matches    bool
		err        string
	}{
		"none":                     {nil, true, ""},
		"all true":                 {conditions("true", "1 < 2"), true, ""},
		"one false":                {conditions("true", "false"), false, ""},
		"an error":                 {conditions("true", fails), false, "no such key: missing"},
		"false after an error":     {conditions(fails, "false"), false, ""},
		"false before an error":    {conditions("false", fails), false, ""},
		"two errors":               {conditions(fails, "object.other == 1"), false, "no such key: other"},
		"one that is not compiled": {conditions("true", "object."), false, "compilation error: compilation failed"},
		"one of a wrong type":      {conditions("'text'"), false, "must evaluate to bool but got string"},
		"an unknown variable":      {conditions("params == null"), false, "undeclared reference to 'params'"},
	} {
		e := engine(&rights{})
		matches, err := e.Match(t.Context(), x.conditions, e.Request(update()))
		if matches != x.matches || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %v, %v", name, matches, err)
		}
	}
}

// A new condition may use what the emulated release and the one before it have. What is
// stored may use everything.
func TestReleases(t *testing.T) {
	r, err := release.Of("1.30")
	if err != nil {
		t.Fatal(err)
	}
	old := cel.New(cel.Config{Release: r})
	const newer = `semver('1.2.3').major() == 1`
	if err := old.CheckMatch(newer); err == nil {
		t.Error("1.30 accepts a function of 1.33")
	}
	if err := engine(nil).CheckMatch(newer); err != nil {
		t.Error(err)
	}
	if matches, err := old.Match(t.Context(), conditions(newer), old.Request(update())); !matches || err != nil {
		t.Errorf("a stored expression: %v, %v", matches, err)
	}
}

// The namespace of a Namespace is itself, and requests without objects have null.
func TestRequestsOfNamespacesAndDeletions(t *testing.T) {
	e := engine(&rights{})
	r := e.Request(services.AdmissionRequest{Operation: services.OperationDelete, Version: "v1", Resource: "namespaces", Kind: "Namespace", Name: "shop"})
	for _, source := range []string{`request.namespace == 'shop'`, `object == null && oldObject == null`, `request.options == null`} {
		if matches, err := e.Match(t.Context(), conditions(source), r); !matches || err != nil {
			t.Errorf("%s: %v, %v", source, matches, err)
		}
	}
}

// An object that cannot be read is an error, and so is one that nests too deeply.
func TestUnreadableObjects(t *testing.T) {
	e := engine(&rights{})
	for _, object := range []string{`{`, `[]`, `{"a":` + strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000) + `}`} {
		r := update()
		r.Object = []byte(object)
		if _, err := e.Match(t.Context(), conditions("true"), e.Request(r)); err == nil || !strings.Contains(err.Error(), "failed to prepare object variable") {
			t.Errorf("%.10s: %v", object, err)
		}
	}
}

// A check that is not decided is an error for the failure policy, whatever the expression
// makes of it.
func TestAuthorizationUnavailable(t *testing.T) {
	e := engine(&rights{err: errors.New("connection refused")})
	for _, source := range []string{
		`authorizer.requestResource.check('get').allowed()`, `!authorizer.requestResource.check('get').allowed()`,
		`authorizer.requestResource.check('get').errored()`,
	} {
		matches, err := e.Match(t.Context(), conditions(source), e.Request(update()))
		if matches || err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v, %v", source, matches, err)
		}
	}
}

// Equal checks of one request are made once; the groups of the user are passed on.
func TestChecksAreRemembered(t *testing.T) {
	authz := &rights{}
	e := engine(authz)
	r := e.Request(update())
	for range 3 {
		if matches, err := e.Match(t.Context(), conditions(`authorizer.group('').resource('pods').check('delete').allowed()`), r); !matches || err != nil {
			t.Fatal(matches, err)
		}
	}
	if len(authz.calls) != 1 || authz.calls[0].User.Groups[0] != "dev" || authz.calls[0].User.Extra["scopes"][1] != "b" {
		t.Errorf("calls: %+v", authz.calls)
	}
}

func TestBudgets(t *testing.T) {
	object := `{"spec":{"list":[` + strings.TrimSuffix(strings.Repeat("1,", 300), ",") + `],"text":"` + strings.Repeat("a", 100_000) + `"}}`
	for name, x := range map[string]struct {
		conditions []cel.MatchCondition
		err        string
	}{
		"nested comprehensions": {conditions(`object.spec.list.all(a, object.spec.list.all(b, object.spec.list.all(c, a + b + c > 0)))`), "cost"},
		"regular expressions": {
			conditions(`object.spec.list.all(a, object.spec.text.matches('(a+)+b|(a*)*c' + string(a)) || true)`), "cost"},
		"growing strings":    {conditions(`object.spec.list.map(a, object.spec.text + object.spec.text).all(t, t.size() > 0)`), "cost"},
		"checks in a loop":   {conditions(`object.spec.list.all(a, authorizer.group(string(a)).resource('x').check('get').allowed() || true)`), "cost"},
		"many cheap enough":  {repeated(`object.spec.list.all(a, !object.spec.list.exists(b, a + b == 3))`, 4), "cost budget"},
		"a huge replacement": {conditions(`object.spec.text.replace('a', object.spec.text).size() > 0`), "the result is larger than 8388608 bytes"},
		"a huge list":        {conditions(`object.spec.list.map(a, object.spec.text).join('').size() > 0`), "the result is larger than 8388608 bytes"},
		"a huge format":      {conditions(`('%s' + '%s%s%s%s%s%s%s%s%s%s').format(object.spec.list.map(a, object.spec.text)).size() > 0`), "the result may be larger than 8388608 bytes"},
		"a huge item":        {conditions(`'%s'.format([[{'a': object.spec.list.map(a, object.spec.text)}]]).size() > 0`), "the result may be larger than 8388608 bytes"},
		"many places":        {conditions(`'%.999999f%.9999999f'.format([1.0, 1.0]).size() > 0`), "the result may be larger than 8388608 bytes"},
		"formats":            {conditions(`object.spec.list.all(a, '%s%s%s%s'.format([object.spec.text, object.spec.text, object.spec.text, object.spec.text]).size() > 0)`), "cost"},
		"a huge quantity":    {conditions(`quantity('1e2000000000').compareTo(quantity('1')) > 0`), "exponent"},
		"a tiny quantity":    {conditions(`quantity('1e-2000000000').isGreaterThan(quantity('1'))`), "exponent"},
		"is no quantity":     {conditions(`isQuantity('1e2000000000') || quantity('').isInteger()`), "quantities must match"},
		"replacements":       {conditions(`object.spec.list.all(a, object.spec.text.replace('a', 'aaaaaaaaaaaaaaaaaaaa').size() > 0)`), "cost"},
	} {
		authz := &rights{}
		e := engine(authz)
		r := update()
		r.Object = []byte(object)
		matches, err := e.Match(t.Context(), x.conditions, e.Request(r))
		if matches || err == nil || !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %v, %.300v", name, matches, err)
		}
		if len(authz.calls) > 10 {
			t.Errorf("%s: %d checks", name, len(authz.calls))
		}
	}
}

func repeated(source string, times int) []cel.MatchCondition {
	return conditions(strings.Split(strings.TrimSuffix(strings.Repeat(source+"\n", times), "\n"), "\n")...)
}

// An evaluation ends with its context.
func TestDeadline(t *testing.T) {
	e := engine(&rights{})
	r := update()
	r.Object = []byte(`{"spec":{"list":[` + strings.TrimSuffix(strings.Repeat("1,", 1000), ",") + `]}}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Match(ctx, conditions(`object.spec.list.all(a, object.spec.list.all(b, a + b > 0))`), e.Request(r))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Requests may be evaluated by many callers at once, whose expressions are compiled once.
func TestConcurrentMatches(t *testing.T) {
	e := engine(&rights{})
	r := e.Request(update())
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			source := fmt.Sprintf(`object.spec.replicas + %d > 0 && authorizer.group('').resource('pods').check('delete').allowed()`, i%4)
			if matches, err := e.Match(t.Context(), conditions(source), r); !matches || err != nil {
				t.Error(matches, err)
			}
		})
	}
	group.Wait()
}
