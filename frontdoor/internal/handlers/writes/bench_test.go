package writes

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

const deployments = "/apis/apps/v1/namespaces/shop/deployments"

// BenchmarkWrite measures a write from request to response, with a store in memory and
// without admission.
func BenchmarkWrite(b *testing.B) {
	content, err := os.ReadFile("../../typesystem/fieldmanager/testdata/bench/deployment.yaml")
	if err != nil {
		b.Fatal(err)
	}
	manifest, err := yaml.YAMLToJSON(content)
	if err != nil {
		b.Fatal(err)
	}
	deployment := string(manifest)
	changed := func(i int) string {
		return strings.Replace(deployment, `"replicas":3`, fmt.Sprintf(`"replicas":%d`, i%1000+1), 1)
	}
	small := func(name string, i int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"a":"%d"}}`, name, i)
	}
	const applied = deployments + "/web?fieldManager=bench"
	for _, x := range []struct {
		name, method, path string
		body               func(i int) string
	}{
		{"create", "POST", configMaps, func(i int) string { return small(fmt.Sprint("c", i), i) }},
		{"put", "PUT", configMaps + "/own", func(i int) string { return small("own", i) }},
		{"merge", "PATCH", configMaps + "/own", func(i int) string { return fmt.Sprintf(`{"data":{"a":"%d"}}`, i) }},
		{"create 70 fields", "POST", deployments, func(i int) string {
			return strings.Replace(deployment, `"name":"web","namespace"`, fmt.Sprintf(`"name":"d%d","namespace"`, i), 1)
		}},
		{"apply one of 70 fields", "APPLY", applied, changed},
		{"apply no change", "APPLY", applied, func(int) string { return deployment }},
	} {
		b.Run(x.name, func(b *testing.B) {
			c := newClient(b, fake.New(b).Store(), "10.0.0.0/24")
			c.must("POST", configMaps, small("own", -1))
			c.must("APPLY", applied, deployment)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.must(x.method, x.path, x.body(i))
			}
		})
	}
}
