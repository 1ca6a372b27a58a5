package test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/prometheus-adapter/pkg/client"
	"sigs.k8s.io/prometheus-adapter/pkg/config"
	"sigs.k8s.io/prometheus-adapter/pkg/naming"
	"sigs.k8s.io/yaml"
)

// scraped returns what a process of a real suite has shown, as a scrape of one of its pods stores it:
// PORTICO_METRICS=folder go test -run TestMetrics ./test/e2e records it. Values of own series replace it.
func scraped(t *testing.T, namespace, job, pod, own string) string {
	t.Helper()
	content, err := os.ReadFile("testdata/" + job + ".prom")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, more, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		value += "x60"
		for replaced := range strings.Lines(own) {
			if of, to, _ := strings.Cut(strings.TrimSpace(replaced), " "); of == series {
				value = to
			}
		}
		if value != "gone" {
			lines = append(lines, fmt.Sprintf(`%s{namespace=%q,job=%q,pod=%q,instance="10.0.0.1:8080",%s} %s`, name, namespace, job, pod, more, value))
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), ",}", "}") + "\n"
}

// adapter asks what a HorizontalPodAutoscaler asks prometheus-adapter, by the rules that are shipped.
type adapter struct {
	t      *testing.T
	engine *promql.Engine
	data   string
	namers []naming.MetricNamer
}

func newAdapter(t *testing.T, data string) *adapter {
	t.Helper()
	c, err := config.FromFile("../adapter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	namers, err := naming.NamersFromConfig(c.Rules, mapper)
	if err != nil {
		t.Fatal(err)
	}
	return &adapter{t: t, engine: promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), data: data, namers: namers}
}

// query evaluates an expression an hour after the series began.
func (a *adapter) query(expr client.Selector) promql.Vector {
	a.t.Helper()
	query, err := a.engine.NewInstantQuery(a.t.Context(), promqltest.LoadedStorage(a.t, a.data), nil, string(expr), time.Unix(0, 0).Add(time.Hour))
	if err != nil {
		a.t.Fatalf("%s: %v", expr, err)
	}
	defer query.Close()
	vector, err := query.Exec(a.t.Context()).Vector()
	if err != nil {
		a.t.Fatalf("%s: %v", expr, err)
	}
	return vector
}

// metrics are the metrics that the API of custom metrics shows, with the namer and the name of the series of each.
func (a *adapter) metrics() map[string]found {
	all := map[string]found{}
	for _, namer := range a.namers {
		for _, sample := range a.query(namer.Selector()) {
			series := client.Series{Name: sample.Metric.Get(model.MetricNameLabel), Labels: model.LabelSet{}}
			for name, value := range sample.Metric.Map() {
				series.Labels[model.LabelName(name)] = model.LabelValue(value)
			}
			if len(namer.FilterSeries([]client.Series{series})) == 0 {
				a.t.Errorf("%s selects %s, and then filters it out", namer.Selector(), series.Name)
			}
			name, err := namer.MetricNameForSeries(series)
			if err != nil {
				a.t.Fatal(err)
			}
			if other, ok := all[name]; ok && other.namer != namer {
				a.t.Errorf("two rules give %s", name)
			}
			if resources, namespaced := namer.ResourcesForSeries(series); !namespaced || !slices.Contains(resources, pods) {
				a.t.Errorf("%s is about %v", name, resources)
			}
			all[name] = found{namer, series.Name}
		}
	}
	return all
}

type found struct {
	namer  naming.MetricNamer
	series string
}

var pods = schema.GroupResource{Resource: "pods"}

// TestAdapter: prometheus-adapter takes the rules, and its answers are the load of each pod, whatever else the
// Prometheus has.
func TestAdapter(t *testing.T) {
	replay := `portico_rpc_server_seconds_sum{code="OK",method="/portico.v1.WatchHub/Replay"}`
	keys := `portico_rpc_server_seconds_sum{code="OK",method="/portico.v1.WatchHub/Keys"}`
	a := newAdapter(t, "load 1m\n"+
		scraped(t, "a", "frontdoor", "door-0", "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 30x60\napiserver_current_inflight_requests{request_kind=\"mutating\"} 12x60")+
		scraped(t, "a", "frontdoor", "door-1", "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 0x58 6 6")+
		scraped(t, "b", "frontdoor", "door-0", "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 700x60")+
		scraped(t, "a", "store", "store-0", `portico_store_mirror_revision{etcd="main"} 9000x60`)+
		scraped(t, "a", "store", "store-1", `portico_store_mirror_revision{etcd="main"} 9100x60`)+
		scraped(t, "b", "store", "store-0", `portico_store_mirror_revision{etcd="main"} 70000x60`)+
		scraped(t, "a", "watch-hub", "hub-0", replay+" 0+90x60\n"+keys+" 0+600x60\n"+`portico_watchhub_revision{etcd="main"} 8000x60`)+
		scraped(t, "a", "watch-hub", "hub-1", replay+" gone\n"+`portico_watchhub_revision{etcd="main"} 9500x60`)+
		scraped(t, "b", "watch-hub", "hub-0", replay+" 0+600x60")+
		`apiserver_current_inflight_requests{namespace="a",job="apiserver",pod="door-0",request_kind="readOnly"} 5000x60`)
	all := a.metrics()
	want := map[string]map[string]float64{
		"apiserver_current_inflight_requests": {"door-0": 42, "door-1": 6},
		"portico_watchhub_replays":            {"hub-0": 1.5, "hub-1": 0},
		"portico_watchhub_lag":                {"hub-0": 1100, "hub-1": 0},
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("the rules give %v", got)
	}
	known := metrics(t)
	for name, values := range want {
		query, err := all[name].namer.QueryForSeries(all[name].series, pods, "a", labels.Everything(), slices.Sorted(maps.Keys(values))...)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, sample := range a.query(query) {
			got[sample.Metric.Get("pod")] += sample.F
		}
		if !maps.EqualFunc(got, values, func(a, b float64) bool { return a > b-0.01 && a < b+0.01 }) {
			t.Errorf("%s: %v, want %v by %s", name, got, values, query)
		}
		for _, expr := range []client.Selector{query, all[name].namer.Selector()} {
			for _, wrong := range check(string(expr), known) {
				t.Errorf("%s: %s", name, wrong)
			}
		}
	}
	for service, names := range scaledBy(t) {
		for _, name := range names {
			if want[name] == nil {
				t.Errorf("%s scales by %s, which no rule gives", service, name)
			}
		}
	}
}

// scaledBy returns what each service of the chart scales by besides CPU, by default.
func scaledBy(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("../../helm/portico/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	by := map[string][]string{}
	for service, of := range values {
		settings, _ := of.(map[string]any)
		scaling, _ := settings["autoscaling"].(map[string]any)
		list, _ := scaling["podMetrics"].([]any)
		for _, metric := range list {
			by[service] = append(by[service], metric.(map[string]any)["name"].(string))
		}
	}
	if len(by["frontdoor"]) != 1 || len(by["watchHub"]) != 2 || len(by) != 2 {
		t.Errorf("scaled by %v", by)
	}
	return by
}
