package cel

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// maxNumber is the size of the longest text of a value that is no string, list or map, without
// the decimal places that the format requires.
const maxNumber = 400

// formatter is the original function format.
var formatter = sync.OnceValues(func() (cel.Program, error) {
	env, err := cel.NewEnv(ext.Strings(ext.StringsVersion(2)), cel.Variable("format", cel.StringType), cel.Variable("args", cel.ListType(cel.DynType)))
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile("format.format(args)")
	if issues != nil {
		return nil, issues.Err()
	}
	return env.Program(ast)
})

// format calls the original function unless the result may be too large.
func format(format, args ref.Val) ref.Val {
	text, isText := format.(types.String)
	list, isList := args.(traits.Lister)
	if !isText || !isList {
		return types.NoSuchOverloadErr()
	}
	if formatted(list, maxText-len(text)-places(string(text))) < 0 {
		return types.NewErr("format: the result may be larger than %d bytes", maxText)
	}
	program, err := formatter()
	if err != nil {
		return types.WrapErr(err)
	}
	result, _, err := program.Eval(map[string]any{"format": format, "args": args})
	if err != nil {
		return types.WrapErr(err)
	}
	return result
}

// places returns the sum of the decimal places that a format requires.
func places(format string) (sum int) {
	for {
		_, rest, found := strings.Cut(format, ".")
		if !found {
			return sum
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits > 0 {
			n, err := strconv.Atoi(rest[:digits])
			if err != nil || n > math.MaxInt32 {
				return math.MaxInt32
			}
			sum = min(sum+n, math.MaxInt32)
		}
		format = rest
	}
}

// formatted returns how many of the given bytes are left after a value was formatted, in the form
// that takes most; a negative number if they do not suffice.
func formatted(v ref.Val, left int) int {
	const between = 8 // what is between two items, and around strings
	switch v := v.(type) {
	case types.String:
		return left - 2*len(v) - between
	case types.Bytes:
		return left - 2*len(v) - between
	case traits.Mapper:
		for i := v.Iterator(); left >= 0 && i.HasNext() == types.True; {
			key := i.Next()
			left = formatted(v.Get(key), formatted(key, left-between))
		}
	case traits.Lister:
		for i := v.Iterator(); left >= 0 && i.HasNext() == types.True; {
			left = formatted(i.Next(), left-between)
		}
	default:
		left -= maxNumber
	}
	return left
}
