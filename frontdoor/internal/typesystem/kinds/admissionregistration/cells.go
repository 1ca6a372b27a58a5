package admissionregistration

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
)

// unset is the value of a cell about parameters that a policy does not have.
const unset = "<unset>"

// showParamKind returns the kind of a policy's parameters.
func showParamKind(o *cell.Object) any {
	kind := o.Spec.Get("paramKind")
	if !kind.Exists() {
		return unset
	}
	return kind.Get("apiVersion").Text() + "/" + kind.Get("kind").Text()
}

// showParamRef returns the parameters of a binding. Whether the namespace of parameters by
// name is that of each object cannot be seen here.
func showParamRef(o *cell.Object) any {
	ref := o.Spec.Get("paramRef")
	name, namespace := ref.Get("name").Text(), ref.Get("namespace").Text()
	switch {
	case name != "" && namespace != "":
		return namespace + "/" + name
	case name != "":
		return "*/" + name
	}
	var selector metav1.LabelSelector
	if given := ref.Get("selector"); given.Exists() && json.Unmarshal(given, &selector) == nil {
		return selector.String()
	}
	return unset
}
