package cel

import (
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portico-platform/portico/services/quantity"
)

// maxText bounds the results of replace and join, in bytes: far more than any object has.
const maxText = 8 << 20

// Bounded is Base for a compiler that declares its own variables: the results of the functions replace, join
// and format and of quantities are bounded, as in the other expressions.
func (e *Engine) Bounded() (*environment.EnvSet, error) {
	return e.Base().Extend(environment.VersionedOptions{IntroducedVersion: always(), EnvOptions: bounded()})
}

// bounded redefines the functions replace, join and format, and those that parse quantities. The
// original counts the cost of a call after it has been made, and that of replace and format by the
// length of the old text alone: one call could fill the memory. A quantity of twelve characters can
// have a thousand million digits.
func bounded() []cel.EnvOption {
	text := cel.StringType
	quantities := []cel.EnvOption{
		cel.Function("quantity", cel.Overload("string_to_quantity", []*cel.Type{text}, apiservercel.QuantityType, cel.UnaryBinding(parseQuantity))),
		cel.Function("isQuantity", cel.Overload("is_quantity_string", []*cel.Type{text}, cel.BoolType, cel.UnaryBinding(func(v ref.Val) ref.Val {
			return types.Bool(!types.IsError(parseQuantity(v)))
		}))),
		cel.Function("format", cel.MemberOverload("string_format", []*cel.Type{text, cel.ListType(cel.DynType)}, text, cel.BinaryBinding(format))),
	}
	texts := cel.ListType(text)
	joined := cel.Function("join",
		cel.MemberOverload("list_join", []*cel.Type{texts}, text, cel.UnaryBinding(func(list ref.Val) ref.Val { return join(list, types.String("")) })),
		cel.MemberOverload("list_join_string", []*cel.Type{texts, text}, text, cel.BinaryBinding(join)))
	return append(quantities, joined, cel.Function("replace",
		cel.MemberOverload("string_replace_string_string", []*cel.Type{text, text, text}, text, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			return replace(args, -1)
		})),
		cel.MemberOverload("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text, cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			most, ok := args[3].(types.Int)
			if !ok {
				return types.MaybeNoSuchOverloadErr(args[3])
			}
			return replace(args, int(max(math.MinInt32, min(most, math.MaxInt32))))
		}))))
}

// parseQuantity is the conversion of text.
func parseQuantity(v ref.Val) ref.Val {
	text, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	q, err := quantity.Parse(string(text))
	if err != nil {
		return types.WrapErr(err)
	}
	return apiservercel.Quantity{Quantity: &q}
}

// join joins the strings of a list.
func join(list, separator ref.Val) ref.Val {
	items, isList := list.(traits.Lister)
	between, isText := separator.(types.String)
	if !isList || !isText {
		return types.NoSuchOverloadErr()
	}
	var result strings.Builder
	first := true
	for i := items.Iterator(); i.HasNext() == types.True; {
		value := i.Next()
		item, ok := value.(types.String)
		if !ok {
			return types.NewErr("join: invalid input: %v", value)
		}
		if !first {
			result.WriteString(string(between))
		}
		first = false
		if result.WriteString(string(item)); result.Len() > maxText {
			return types.NewErr("join: the result is larger than %d bytes", maxText)
		}
	}
	return types.String(result.String())
}

// replace replaces up to most occurrences of a text, all if most is negative.
func replace(args []ref.Val, most int) ref.Val {
	in, a := args[0].(types.String)
	before, b := args[1].(types.String)
	after, c := args[2].(types.String)
	if !a || !b || !c {
		return types.NoSuchOverloadErr()
	}
	count := strings.Count(string(in), string(before))
	if most >= 0 {
		count = min(count, most)
	}
	if grown := len(after) - len(before); grown > 0 && count > (maxText-len(in))/grown {
		return types.NewErr("replace: the result is larger than %d bytes", maxText)
	}
	return types.String(strings.Replace(string(in), string(before), string(after), most))
}
