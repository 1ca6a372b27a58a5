package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

func fieldsOf(one *Widget) fields.Set {
	return fields.Set{"metadata.name": one.Name, "metadata.namespace": one.Namespace}
}

// metrics serves the same metrics for every name.
type metrics struct {
	rest.TableConvertor
	singular   string
	namespaced bool
	one, many  func() runtime.Object
	get        func(ctx context.Context, name string) runtime.Object
	list       func(ctx context.Context) runtime.Object
}

func usage(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func nodeMetrics() rest.Storage {
	get := func(_ context.Context, name string) runtime.Object {
		return &v1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: name}, Timestamp: metav1.Now(), Window: metav1.Duration{Duration: time.Minute},
			Usage: usage("250m", "512Mi")}
	}
	return &metrics{TableConvertor: rest.NewDefaultTableConvertor(metricsVersion.WithResource("nodes").GroupResource()), singular: "node",
		one: func() runtime.Object { return &v1beta1.NodeMetrics{} }, many: func() runtime.Object { return &v1beta1.NodeMetricsList{} }, get: get,
		list: func(ctx context.Context) runtime.Object {
			return &v1beta1.NodeMetricsList{Items: []v1beta1.NodeMetrics{*get(ctx, "n").(*v1beta1.NodeMetrics)}}
		}}
}

func podMetrics() rest.Storage {
	get := func(ctx context.Context, name string) runtime.Object {
		return &v1beta1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: request.NamespaceValue(ctx)}, Timestamp: metav1.Now(), Window: metav1.Duration{Duration: time.Minute},
			Containers: []v1beta1.ContainerMetrics{{Name: "main", Usage: usage("125m", "64Mi")}}}
	}
	return &metrics{TableConvertor: rest.NewDefaultTableConvertor(metricsVersion.WithResource("pods").GroupResource()), singular: "pod", namespaced: true,
		one: func() runtime.Object { return &v1beta1.PodMetrics{} }, many: func() runtime.Object { return &v1beta1.PodMetricsList{} }, get: get,
		list: func(ctx context.Context) runtime.Object {
			return &v1beta1.PodMetricsList{Items: []v1beta1.PodMetrics{*get(ctx, "p").(*v1beta1.PodMetrics)}}
		}}
}

func (m *metrics) New() runtime.Object     { return m.one() }
func (m *metrics) NewList() runtime.Object { return m.many() }
func (m *metrics) Destroy()                {}
func (m *metrics) NamespaceScoped() bool   { return m.namespaced }
func (m *metrics) GetSingularName() string { return m.singular }

func (m *metrics) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return m.get(ctx, name), nil
}

func (m *metrics) List(ctx context.Context, _ *internalversion.ListOptions) (runtime.Object, error) {
	return m.list(ctx), nil
}
