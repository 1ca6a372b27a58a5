package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	generated "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// definitions returns the schemas of all types.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := generated.GetOpenAPIDefinitions(ref)
	meta, list := metav1.ObjectMeta{}.OpenAPIModelName(), metav1.ListMeta{}.OpenAPIModelName()
	text := func(about string) spec.Schema { return *spec.StringProperty().WithDescription(about) }
	object := func(about string, properties map[string]spec.Schema, uses ...string) common.OpenAPIDefinition {
		return common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{Description: about, Type: []string{"object"}, Properties: properties}}, Dependencies: uses}
	}
	pointer := func(name string) spec.Schema { return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(name)}} }
	whole := func(about, item string, rest map[string]spec.Schema) common.OpenAPIDefinition {
		properties := map[string]spec.Schema{"apiVersion": text("The version of the schema."), "kind": text("The name of the schema."), "metadata": pointer(item)}
		for name, schema := range rest {
			properties[name] = schema
		}
		return object(about, properties, item)
	}
	add := func(name string, definition common.OpenAPIDefinition, uses ...string) {
		definition.Dependencies = append(definition.Dependencies, uses...)
		all[name] = definition
	}
	items := func(name string) map[string]spec.Schema {
		return map[string]spec.Schema{"items": *spec.ArrayProperty(&spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(name)}})}
	}
	widget, wanted := Widget{}.OpenAPIModelName(), WidgetSpec{}.OpenAPIModelName()
	add(wanted, object("WidgetSpec is what is wanted of a widget.", map[string]spec.Schema{"size": *spec.Int64Property().WithDescription("The size of the widget.")}))
	add(widget, whole("Widget is a thing with a size.", meta, map[string]spec.Schema{"spec": pointer(wanted)}), wanted)
	add(WidgetList{}.OpenAPIModelName(), whole("WidgetList is a list of widgets.", list, items(widget)), widget)
	for one, many := range map[string]string{v1beta1.NodeMetrics{}.OpenAPIModelName(): v1beta1.NodeMetricsList{}.OpenAPIModelName(), v1beta1.PodMetrics{}.OpenAPIModelName(): v1beta1.PodMetricsList{}.OpenAPIModelName()} {
		add(one, whole("The use of resources.", meta, nil))
		add(many, whole("A list of the use of resources.", list, items(one)), one)
	}
	return all
}
