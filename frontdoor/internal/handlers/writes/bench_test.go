package writes

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

const (
	deployments = "/apis/apps/v1/namespaces/shop/deployments"
	pods        = "/api/v1/namespaces/shop/pods"
)

// pod returns a pod of 6 KiB as it is stored.
func pod(name string) string {
	env := make([]string, 30)
	for i := range env {
		env[i] = fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%d-of-a-usual-length"}`, i, i)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":"web","tier":"front"},
		"annotations":{"example.com/owner":"team-1","example.com/note":"0000000000"}},"spec":{"nodeName":"node-1","containers":[{"name":"main",
		"image":"registry.example.com/web:1.2.3","ports":[{"containerPort":8080,"protocol":"TCP"}],
		"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"env":[%s]}]}}`, name, strings.Join(env, ","))
}

// BenchmarkWrite measures a write from request to response, with a store in memory and
// without admission; cpu-ns is the CPU time of the process, for shared machines.
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
	var own string // the pod of the last answer
	const applied = deployments + "/web?fieldManager=bench"
	for _, x := range []struct {
		name, method, path string
		body               func(i int) string
	}{
		{"create", "POST", configMaps, func(i int) string { return small(fmt.Sprint("c", i), i) }},
		{"put", "PUT", configMaps + "/own", func(i int) string { return small("own", i) }},
		{"merge", "PATCH", configMaps + "/own", func(i int) string { return fmt.Sprintf(`{"data":{"a":"%d"}}`, i) }},
		{"create pod", "POST", pods, func(i int) string { return pod(fmt.Sprint("c", i)) }},
		{"put pod", "PUT", pods + "/own", func(i int) string {
			before, after, _ := strings.Cut(own, `example.com/note":"`)
			return fmt.Sprintf(`%sexample.com/note":"%010d%s`, before, i+1, after[10:])
		}},
		{"merge pod", "PATCH", pods + "/own", func(i int) string { return fmt.Sprintf(`{"metadata":{"annotations":{"example.com/note":"%d"}}}`, i) }},
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
			answer, err := c.bytes("POST", pods, pod("own"))
			b.ReportAllocs()
			before := cpuTime()
			for i := 0; b.Loop() && err == nil; i++ {
				own = string(answer)
				answer, err = c.bytes(x.method, x.path, x.body(i))
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
