package rules

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
)

// ScalePaths are the field paths that the scale of a custom type reads.
type ScalePaths struct {
	Replicas, StatusReplicas []string
	Selector                 []string // empty for none
}

// Scale validates the fields that the scale of a custom type reads, whose types the schema
// may leave open. A write of the status changes only the status, so the replicas in the
// spec are not validated then.
func (c *Check) Scale(at ScalePaths, object map[string]any) {
	if c.Subresource != "status" {
		c.replicas(object, at.Replicas)
	}
	c.replicas(object, at.StatusReplicas)
	if len(at.Selector) == 0 {
		return
	}
	if text, _, err := unstructured.NestedString(object, at.Selector...); err != nil {
		c.Invalid(pathOf(at.Selector), text, err.Error())
	}
}

func (c *Check) replicas(object map[string]any, where []string) {
	n, _, err := unstructured.NestedInt64(object, where...)
	switch {
	case err != nil:
		c.Invalid(pathOf(where), n, err.Error())
	case n < 0:
		c.Invalid(pathOf(where), n, "should be a non-negative integer")
	case n > math.MaxInt32:
		c.Invalid(pathOf(where), n, "should be less than or equal to 2147483647")
	}
}

// pathOf returns a path in the form of CustomResourceDefinitions.
func pathOf(names []string) *field.Path { return &field.Path{Name: "." + strings.Join(names, ".")} }
