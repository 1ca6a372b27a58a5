package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

var (
	widgetVersion  = schema.GroupVersion{Group: "extension.example.com", Version: "v1"}
	metricsVersion = schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}

	scheme     = newScheme()
	codecs     = serializer.NewCodecFactory(scheme)
	parameters = runtime.NewParameterCodec(scheme)
)

// newScheme returns the types, whose internal version is the same as the served one.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for version, types := range map[schema.GroupVersion][]runtime.Object{
		widgetVersion:  {&Widget{}, &WidgetList{}},
		metricsVersion: {&v1beta1.NodeMetrics{}, &v1beta1.NodeMetricsList{}, &v1beta1.PodMetrics{}, &v1beta1.PodMetricsList{}},
	} {
		s.AddKnownTypes(version, types...)
		s.AddKnownTypes(schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}, types...)
		metav1.AddToGroupVersion(s, version)
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	s.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s
}

// Widget is a thing with a size.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec,omitempty"`
}

// WidgetSpec is what is wanted of a widget.
type WidgetSpec struct {
	Size int64 `json:"size,omitempty"`
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	c.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := &WidgetList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return c
}

// OpenAPIModelName implements the interface of the library.
func (Widget) OpenAPIModelName() string { return "com.example.extension.v1.Widget" }

// OpenAPIModelName implements the interface of the library.
func (WidgetSpec) OpenAPIModelName() string { return "com.example.extension.v1.WidgetSpec" }

// OpenAPIModelName implements the interface of the library.
func (WidgetList) OpenAPIModelName() string { return "com.example.extension.v1.WidgetList" }
