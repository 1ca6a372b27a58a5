package cel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

// Mutation returns what the only expression of x, of the use ApplyConfiguration or JSONPatch,
// evaluates to: the JSON of an apply configuration without apiVersion and kind, or of a JSON
// patch. Errors are those of Evaluate, and of the expression itself.
func (x Expressions) Mutation(ctx context.Context, r *Request, b Bindings) (json.RawMessage, error) {
	results, _, err := r.evaluate(x.compiler.CreateContext(ctx), x.programs, b, Budget)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case results[0].Error != nil:
		return nil, results[0].Error
	}
	switch v := results[0].EvalResult.(type) {
	case *dynamic.ObjectVal:
		return configuration(v)
	case traits.Lister:
		return jsonPatch(v)
	}
	return nil, errors.New("the expression has no result")
}

// configuration returns an Object as JSON.
func configuration(v *dynamic.ObjectVal) (json.RawMessage, error) {
	if err := v.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, fmt.Errorf("type mismatch: %w", err)
	}
	return json.Marshal(v.Value())
}

// operation is one of a JSON patch.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// jsonPatch returns a list of JSONPatch as JSON.
func jsonPatch(list traits.Lister) (json.RawMessage, error) {
	patch := []operation{}
	for i := list.Iterator(); i.HasNext() == types.True; {
		native, err := i.Next().ConvertToNative(reflect.TypeFor[*mutation.JSONPatchVal]())
		if err != nil {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: %w", err)
		}
		v, ok := native.(*mutation.JSONPatchVal)
		if !ok {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of %T", native)
		}
		o := operation{Op: v.Op, Path: v.Path, From: v.From}
		if v.Val != nil {
			if o.Value, err = valueOf(v.Val); err != nil {
				return nil, err
			}
		}
		patch = append(patch, o)
	}
	return json.Marshal(patch)
}

// valueOf returns the value of an operation as JSON.
func valueOf(v ref.Val) (json.RawMessage, error) {
	if object, ok := v.(*dynamic.ObjectVal); ok {
		if err := object.CheckTypeNamesMatchFieldPathNames(); err != nil {
			return nil, fmt.Errorf("type mismatch: %w", err)
		}
	}
	value, err := v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err == nil {
		var encoded []byte
		if encoded, err = json.Marshal(value); err == nil {
			return encoded, nil
		}
	}
	return nil, fmt.Errorf("JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w", err)
}
