package strain

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func weights() []attack.Trial {
	return []attack.Trial{
		{Name: "DeepObjects", Finding: "B3", Run: deepObjects},
		{Name: "WideObjects", Finding: "B5", Run: wideObjects},
		{Name: "Quantities", Finding: "B5", Run: quantities},
		{Name: "ManyWarnings", Finding: "B6", Run: manyWarnings},
		{Name: "AmplifiedDefaults", Finding: "B7", Run: amplifiedDefaults},
		{Name: "Bombs", Finding: "D", Run: bombs},
		{Name: "ProtobufBodies", Finding: "D", Run: protobufBodies},
	}
}

// Deep returns a JSON object of the given nesting depth.
func Deep(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
}

// Wide returns n items separated by commas; %d in the item is replaced by its number.
func Wide(n int, item string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(item, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// tooSlow is far above the usual duration of a request of less than a megabyte.
const tooSlow = 10 * time.Second

// regular returns the status codes of a request that was processed normally: accepted, or
// refused as invalid or too large.
func regular() []int { return []int{200, 201, 400, 413, 422} }

// deepObjects creates, applies and patches deeply nested objects: small requests that must
// not use much memory.
func deepObjects(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	path, kind, err := attack.Define(ctx, t, namespace, attack.OpenSchema)
	if err != nil {
		return err
	}
	object := func(name string, depth int) string {
		return fmt.Sprintf(`{"apiVersion":"attack.example.com/v1","kind":%q,"metadata":{"name":%q},"spec":%s}`, kind, name, Deep(depth))
	}
	return attack.Modest(t, 400<<20, func() error {
		for _, depth := range []int{50, 500, attack.Count(t, 3000, 6000), attack.Count(t, 4000, 9000)} {
			name := fmt.Sprintf("deep-%d", depth)
			for _, r := range []cluster.Request{
				attack.Request(http.MethodPost, path, object(name, depth)),
				{Method: http.MethodPatch, Path: path + "/" + name + "?fieldManager=a&force=true", Type: "application/apply-patch+yaml", Body: object(name, depth)},
				{Method: http.MethodPatch, Path: path + "/" + name, Type: "application/merge-patch+json", Body: `{"spec":` + Deep(depth) + `}`},
			} {
				if err := attack.Promptly(ctx, tooSlow, fmt.Sprintf("%s at depth %d", r.Method, depth), func(ctx context.Context) error {
					return attack.Expect(ctx, t.Root(), r, append(regular(), http.StatusNotFound)...)
				}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// wideObjects sends objects with very long lists. Each of these lists was once validated in
// quadratic time.
func wideObjects(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	pods := "/api/v1/namespaces/" + namespace + "/pods"
	pod := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"p-"},"spec":{` + spec + `}}`
	}
	for _, w := range []struct{ what, path, body string }{
		{"ownerReferences", attack.ConfigMaps(namespace), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o","ownerReferences":[` +
			Wide(20_000, `{"apiVersion":"v1","kind":"Node","name":"n%d","uid":"u%d"}`) + `]}}`},
		{"unknown fields", attack.ConfigMaps(namespace), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"u"},` +
			Wide(100_000, `"f%d":1`) + `}`},
		{"ports", pods, pod(`"containers":[{"name":"a","image":"a","ports":[` + Wide(30_000, `{"containerPort":%d}`) + `]}]`)},
		{"spread constraints", pods, pod(`"containers":[{"name":"a","image":"a"}],"topologySpreadConstraints":[` +
			Wide(10_000, `{"maxSkew":1,"topologyKey":"k%d","whenUnsatisfiable":"DoNotSchedule"}`) + `]`)},
		{"environment", pods, pod(`"containers":[{"name":"a","image":"a","env":[` + Wide(20_000, `{"name":"E%d","value":"v"}`) + `]}]`)},
		{"volumes", pods, pod(`"containers":[{"name":"a","image":"a"}],"volumes":[` + Wide(15_000, `{"name":"v%d","emptyDir":{}}`) + `]`)},
		{"containers", pods, pod(`"containers":[` + Wide(15_000, `{"name":"c%d","image":"a"}`) + `]`)},
		{"tolerations", pods, pod(`"containers":[{"name":"a","image":"a"}],"tolerations":[` + Wide(15_000, `{"key":"k%d","operator":"Exists"}`) + `]`)},
		{"finalizers", attack.ConfigMaps(namespace), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"f","finalizers":[` + Wide(20_000, `"example.com/f%d"`) + `]}}`},
		{"labels", attack.ConfigMaps(namespace), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"l","labels":{` + Wide(20_000, `"l%d":"v"`) + `}}}`},
	} {
		if err := attack.Promptly(ctx, tooSlow, w.what, func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), attack.Request(http.MethodPost, w.path+"?dryRun=All", w.body), append(regular(), http.StatusForbidden)...)
		}); err != nil {
			return err
		}
	}
	return nil
}

// quantities sends quantities that are short as text and expensive to compare.
func quantities(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	for _, number := range []string{"1e1000000", "1e10000000", "1e-10000000", "1e20000000", strings.Repeat("9", 100_000), "0." + strings.Repeat("0", 100_000) + "1"} {
		body := `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"q-"},"spec":{"containers":[{"name":"a","image":"a",
			"resources":{"limits":{"cpu":"` + number + `"},"requests":{"cpu":"1"}}}]}}`
		r := attack.Request(http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", body)
		if err := attack.Promptly(ctx, 5*time.Second, "cpu "+number[:min(len(number), 20)], func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), r, append(regular(), http.StatusForbidden)...)
		}); err != nil {
			return err
		}
	}
	return nil
}

// manyWarnings sends an object with many unknown fields, each of which causes a warning.
func manyWarnings(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w"},` + Wide(5_000, `"unknown%d":1`) + `}`
	answer, err := t.Root().Do(ctx, attack.Request(http.MethodPost, attack.ConfigMaps(namespace)+"?dryRun=All", body))
	if err != nil {
		return fmt.Errorf("cannot read the response: %w", err)
	}
	return fewWarnings(answer)
}

func fewWarnings(answer cluster.Answer) error {
	size, warnings := 0, answer.Header.Values("Warning")
	for _, w := range warnings {
		size += len(w)
	}
	if len(warnings) > 200 || size > 16<<10 {
		return fmt.Errorf("%d warnings of %d bytes", len(warnings), size)
	}
	return nil
}

// amplifiedDefaults sends many empty items with large defaults.
func amplifiedDefaults(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	schema := `{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
		"properties":{"v":{"type":"string","default":"` + strings.Repeat("d", 100<<10) + `"}}}}}}`
	path, kind, err := attack.Define(ctx, t, namespace, schema)
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"apiVersion":"attack.example.com/v1","kind":%q,"metadata":{"name":"amplified"},"items":[%s]}`,
		kind, Wide(attack.Count(t, 4_000, 20_000), `{}`))
	return attack.Modest(t, 300<<20, func() error {
		return attack.Promptly(ctx, tooSlow, "an object with large defaults", func(ctx context.Context) error {
			return attack.Expect(ctx, t.Root(), attack.Request(http.MethodPost, path+"?dryRun=All", body), 400, 413, 422)
		})
	})
}

// bombs sends bodies that expand or recurse without limit when they are decoded.
func bombs(ctx context.Context, t *attack.Target) error {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return err
	}
	if err := t.Root().Create(ctx, attack.ConfigMaps(namespace), attack.ConfigMap("target", `,"data":{"a":"b"}`)); err != nil {
		return err
	}
	aliases := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 12 {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	object := attack.ConfigMaps(namespace) + "/target"
	return attack.Modest(t, 400<<20, func() error {
		for _, r := range []cluster.Request{
			{Method: http.MethodPost, Path: attack.ConfigMaps(namespace), Type: "application/yaml", Body: aliases},
			{Method: http.MethodPost, Path: attack.ConfigMaps(namespace), Body: strings.Repeat("[", 400_000)},
			{Method: http.MethodPost, Path: attack.ConfigMaps(namespace), Body: `{"a":` + Deep(200_000) + `}`},
			{Method: http.MethodPatch, Path: object, Type: "application/json-patch+json", Body: "[" + Wide(50_000, `{"op":"add","path":"/data/k%d","value":"v"}`) + "]"},
			{Method: http.MethodPatch, Path: object, Type: "application/json-patch+json", Body: `[{"op":"add","path":"/data","value":{}},` +
				Wide(40, `{"op":"copy","from":"/data","path":"/data/c%d"}`) + "]"},
			{Method: http.MethodPatch, Path: object, Type: "application/merge-patch+json", Body: Deep(100_000)},
		} {
			if err := attack.Promptly(ctx, tooSlow, "a bomb of "+r.Type, func(ctx context.Context) error {
				return attack.Expect(ctx, t.Root(), r, regular()...)
			}); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// protobufBodies sends pods with many empty containers in Protobuf, all at once: each body takes
// hundreds of times its bytes when it is decoded, and one user must not have many decoded at a time.
func protobufBodies(ctx context.Context, t *attack.Target) error {
	mallory, err := t.User(ctx, attack.Rule("create", "", "pods"))
	if err != nil {
		return err
	}
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	pod := field(2, bytes.Repeat(field(2, nil), 80_000)) // spec.containers
	body := "k8s\x00" + string(slices.Concat(field(1, slices.Concat(field(1, []byte("v1")), field(2, []byte("Pod")))), field(2, pod)))
	r := cluster.Request{Method: http.MethodPost, Path: "/api/v1/namespaces/" + mallory.Namespace + "/pods?dryRun=All",
		Type: t.Admin.Vocabulary.Protobuf, Body: body}
	return attack.Modest(t, 800<<20, func() error {
		var group errgroup.Group
		for range attack.Count(t, 20, 60) {
			group.Go(func() error {
				return attack.Expect(ctx, mallory.Actor, r, append(regular(), http.StatusTooManyRequests)...)
			})
		}
		return group.Wait()
	})
}
