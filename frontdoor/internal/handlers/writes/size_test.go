package writes

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/growth"
)

// repeated joins n texts.
func repeated(n int, of func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = of(i)
	}
	return strings.Join(texts, ",")
}

// TestLargeRequestsAreBounded sends adverse bodies of the maximum size: each takes at most
// a few seconds of CPU time.
func TestLargeRequestsAreBounded(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	c := newClient(t, &oneObject{}, "10.0.0.0/24")
	c.withWidgets(`{type: object, x-kubernetes-preserve-unknown-fields: true}`)
	const pods, maps = "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/configmaps"
	pod := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{` + spec + `}}`
	}
	container := func(more string) string { return pod(`"containers":[{"name":"c","image":"i",` + more + `}]`) }
	configMap := func(meta string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m",` + meta + `}}`
	}
	widget := func(spec string) string {
		return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":` + spec + `}`
	}
	env := func(i int) string { return fmt.Sprintf(`{"name":"V%d","value":"x"}`, i) }
	for name, x := range map[string]struct{ method, path, body, live string }{
		"owner references": {http.MethodPost, maps, configMap(`"ownerReferences":[` + repeated(25_000, func(i int) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","name":"p%d","uid":"u%d"}`, i, i)
		}) + `]`), ""},
		"equal owner references": {http.MethodPost, maps, configMap(`"ownerReferences":[` + repeated(25_000, func(i int) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","name":"p%d","uid":"u%d"}`, i/2, i/2)
		}) + `]`), ""},
		"unknown fields":   {http.MethodPost, maps, configMap(repeated(150_000, func(i int) string { return fmt.Sprintf(`"f%d":1`, i) })), ""},
		"duplicate fields": {http.MethodPost, maps, configMap(repeated(100_000, func(i int) string { return fmt.Sprintf(`"f%d":1,"f%d":1`, i, i) })), ""},
		"container ports": {http.MethodPost, pods, container(`"ports":[` + repeated(60_000, func(i int) string {
			return fmt.Sprintf(`{"name":"p%d","containerPort":%d}`, i, i+1)
		}) + `]`), ""},
		"spread constraints": {http.MethodPost, pods, pod(`"containers":[{"name":"c","image":"i"}],"topologySpreadConstraints":[` + repeated(30_000, func(i int) string {
			return fmt.Sprintf(`{"maxSkew":1,"topologyKey":"k%d","whenUnsatisfiable":"DoNotSchedule"}`, i)
		}) + `]`), ""},
		"empty containers":   {http.MethodPost, pods, pod(`"containers":[` + repeated(1_000_000, func(int) string { return "{}" }) + `]`), ""},
		"an exponent":        {http.MethodPost, pods, container(`"resources":{"limits":{"cpu":"1e200000000"},"requests":{"cpu":"1"}}`), ""},
		"a number":           {http.MethodPost, pods, container(`"resources":{"limits":{"cpu":1e300},"requests":{"cpu":"1"}}`), ""},
		"strategic, all new": {"STRATEGIC", pods + "/p", `{"spec":{"containers":[{"name":"c","env":[` + repeated(80_000, env) + `]}]}}`, container(`"env":[]`)},
		"strategic, order": {"STRATEGIC", pods + "/p", `{"spec":{"containers":[{"name":"c","$setElementOrder/env":[` + repeated(80_000, func(i int) string { return fmt.Sprintf(`{"name":"V%d"}`, 80_000-i) }) + `]}]}}`,
			container(`"env":[` + repeated(20_000, env) + `]`)},
		"JSON patch": {"JSONPATCH", pods + "/p", `[` + repeated(10_000, func(int) string {
			return `{"op":"add","path":"/spec/containers/0/env/0","value":{"name":"X"}}`
		}) + `]`, container(`"env":[` + repeated(40_000, env) + `]`)},
		"managers": {http.MethodPut, maps + "/m", configMap(`"resourceVersion":"1","managedFields":[` + repeated(15_000, func(i int) string {
			return fmt.Sprintf(`{"manager":"m%d","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k%d":{}}}}`, i, i)
		}) + `]`), configMap(`"uid":"u"`)},
		"owned fields": {http.MethodPut, maps + "/m", configMap(`"resourceVersion":"1","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{` +
			repeated(150_000, func(i int) string { return fmt.Sprintf(`"f:k%d":{}`, i) }) + `}}}]`), configMap(`"uid":"u"`)},
		"apply, a map":  {"APPLY", widgets + "/w?fieldManager=m", widget(`{` + repeated(150_000, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `}`), ""},
		"apply, nulls":  {"APPLY", widgets + "/w?fieldManager=m", widget(`{"x":null,` + repeated(150_000, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `}`), ""},
		"apply, a list": {"APPLY", pods + "/p?fieldManager=m", container(`"env":[{"name":"N","value":null},` + repeated(80_000, func(i int) string { return env(100_000 - i) }) + `]`), ""},
	} {
		c.handlers.Store.(*oneObject).object = services.Object{}
		if x.live != "" {
			live := strings.Replace(x.live, `"metadata":{`, `"metadata":{"namespace":"shop","resourceVersion":"1",`, 1)
			c.handlers.Store.(*oneObject).object = services.Object{UID: "u", Revision: 1, JSON: []byte(live)}
		}
		if len(x.body) > request3MiB {
			t.Errorf("%s: %d bytes are more than a client may send", name, len(x.body))
		}
		var err error
		took := growth.Cost(1, func() { err = c.send(t, x.method, x.path, x.body) })
		t.Logf("%-24s %8d bytes %8v: %.100v", name, len(x.body), took.Round(time.Millisecond), err)
		if took > 8*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

const request3MiB = 3 << 20
