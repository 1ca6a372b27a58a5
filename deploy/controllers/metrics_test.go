package controllers

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// serveMetrics serves the metrics of pods as an extension of the API: each pod of a
// namespace uses as much CPU as the annotation cpu of its pod says.
func (s *site) serveMetrics(t *testing.T) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(s.metrics))
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	number, _ := strconv.Atoi(port)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	if _, err := s.client.CoreV1().Services("kube-system").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	api := map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"spec": map[string]any{"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "kube-system", "name": "metrics", "port": number}}}
	body, _ := json.Marshal(api)
	if err := s.client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").Body(body).SetHeader("Content-Type", "application/json").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "metrics are served", func() error {
		return s.client.CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods").Do(t.Context()).Error()
	})
}

// metrics is the extension.
func (s *site) metrics(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var answer any
	switch {
	case r.URL.Path == "/apis/metrics.k8s.io/v1beta1":
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "metrics.k8s.io/v1beta1",
			APIResources: []metav1.APIResource{{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "PodMetrics", Verbs: metav1.Verbs{"get", "list"}}}}
	case len(path) == 6 && path[5] == "pods":
		pods, err := s.client.CoreV1().Pods(path[4]).List(r.Context(), metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		list := v1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{Kind: "PodMetricsList", APIVersion: "metrics.k8s.io/v1beta1"}}
		for _, pod := range pods.Items {
			used, err := resource.ParseQuantity(pod.Annotations["cpu"])
			if err != nil {
				continue
			}
			m := v1beta1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels}, Timestamp: metav1.Now(), Window: metav1.Duration{Duration: 1e9}}
			for _, c := range pod.Spec.Containers {
				m.Containers = append(m.Containers, v1beta1.ContainerMetrics{Name: c.Name, Usage: corev1.ResourceList{corev1.ResourceCPU: used}})
			}
			list.Items = append(list.Items, m)
		}
		answer = list
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
