package test

import (
	"fmt"
	"maps"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAutoscaling: nothing scales unless it is asked for; then each service scales by CPU and by what the values
// name, by default by what bounds it.
func TestAutoscaling(t *testing.T) {
	if scalers := all[*autoscalingv2.HorizontalPodAutoscaler](render(t, "values/default.yaml")); len(scalers) > 0 {
		t.Errorf("%d services scale by default", len(scalers))
	}
	out, err := runHelm(t.Context(), "template", release, chart, "--values=values/ha.yaml", "--api-versions=autoscaling/v2")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(out)
	if err != nil {
		t.Fatal(err)
	}
	compareScalers(t, all[*autoscalingv2.HorizontalPodAutoscaler](objects))
}

// compareScalers compares the HorizontalPodAutoscalers of values/ha.yaml with what it asks for.
func compareScalers(t *testing.T, scalers []*autoscalingv2.HorizontalPodAutoscaler) {
	t.Helper()
	want := map[string]string{
		"frontdoor": "3-20 cpu 70% apiserver_current_inflight_requests 150",
		"authn":     "2-6 cpu 70% logins 50000",
		"authz":     "2-6 cpu 70%",
		"admission": "2-6 cpu 70%",
		"store":     "2-5 cpu 70%",
		"watch-hub": "2-4 cpu 70% portico_watchhub_replays 4 portico_watchhub_lag 500",
	}
	got := map[string]string{}
	for _, s := range scalers {
		text := fmt.Sprintf("%d-%d", *s.Spec.MinReplicas, s.Spec.MaxReplicas)
		for _, m := range s.Spec.Metrics {
			if m.Pods != nil {
				text += fmt.Sprintf(" %s %d", m.Pods.Metric.Name, m.Pods.Target.AverageValue.Value())
			} else {
				text += fmt.Sprintf(" %s %d%%", m.Resource.Name, *m.Resource.Target.AverageUtilization)
			}
		}
		got[component(s.Labels)] = text
	}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// compareStored compares what Portico has stored.
func (s *site) compareStored(t *testing.T, namespace string) {
	t.Helper()
	list, err := s.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var stored []*autoscalingv2.HorizontalPodAutoscaler
	for i := range list.Items {
		stored = append(stored, &list.Items[i])
	}
	compareScalers(t, stored)
}
