package cel

import (
	"math"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/library"
)

// costs counts the cost of calls as the original does, but that of format by its result, and that
// of adding strings whose types are only known at run time as if they had been known before: such
// an addition would otherwise cost 1, and a loop of them could fill the memory.
type costs struct{ library.CostEstimator }

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if function != operators.Add && overload != overloads.ExtFormatString {
		return c.CostEstimator.CallCost(function, overload, args, result)
	}
	var size int
	switch sum := result.(type) {
	case types.String:
		size = len(sum)
	case types.Bytes:
		size = len(sum)
	default:
		return nil
	}
	cost := uint64(math.Ceil(float64(size) * common.StringTraversalCostFactor))
	return &cost
}
