// Package linear checks recorded histories of clients: whether their reads and writes are
// linearizable, and whether their watches delivered each version of each object exactly
// once. Objects are modeled as registers: a key holds no value or one that is unique to
// its write.
//
// It tests the consistency guarantees: a most-recent read sees every write that completed
// before it began, and a write of unknown outcome takes effect at most once, at any later
// time or never.
package linear

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what an operation does.
type Kind int

// Read returns the value. Create fails if there is a value, the others if there is none;
// Update also if the value is not the expected one.
const (
	Read Kind = iota
	Create
	Update
	Patch
	Delete
)

// Result is the response to the client.
type Result int

// Unknown is no response, or one that does not determine whether the write took effect.
const (
	Unknown Result = iota
	Done
	Missing
	Exists
	Conflict
)

// Operation is one request of a client.
type Operation struct {
	Client int
	Kind   Kind
	Key    string
	// Value is the value that is written or was read; Expected is the value that an update
	// replaces.
	Value, Expected string
	Result          Result
	// Call and Return are when it began and ended. For writes of unknown result, Return is
	// the maximum.
	Call, Return time.Duration
}

// History records the operations of all clients. It is safe for concurrent use.
type History struct {
	mu         sync.Mutex
	started    time.Time
	operations []Operation
}

// NewHistory returns an empty history whose clock starts now.
func NewHistory() *History { return &History{started: time.Now()} }

// Now returns the time since the start of the history.
func (h *History) Now() time.Duration { return time.Since(h.started) }

// Add records an operation that has ended now.
func (h *History) Add(o Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Return = h.Now()
	if o.Result == Unknown {
		if o.Kind == Read {
			return // it has neither an effect nor a result
		}
		o.Return = math.MaxInt64
	}
	h.operations = append(h.operations, o)
}

// Operations returns the recorded operations in the order of Call.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.operations)
	slices.SortFunc(all, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	return all
}

// Verdict is the result of a check.
type Verdict struct {
	// Linearizable is the result; Undecided is true if the check timed out.
	Linearizable, Undecided bool

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// Visualize writes an HTML page that shows the longest linearizable prefix of each key.
func (v Verdict) Visualize(w io.Writer) error { return porcupine.Visualize(v.model, v.info, w) }

// Check searches for an order of all operations that explains every result, for at most
// limit.
func Check(operations []Operation, limit time.Duration) Verdict {
	var history []porcupine.Operation
	for _, o := range operations {
		history = append(history, porcupine.Operation{ClientId: o.Client, Input: o, Output: o, Call: int64(o.Call), Return: int64(o.Return)})
	}
	v := Verdict{model: model()}
	var result porcupine.CheckResult
	result, v.info = porcupine.CheckOperationsVerbose(v.model, history, limit)
	v.Linearizable, v.Undecided = result == porcupine.Ok, result == porcupine.Unknown
	return v
}

// model returns a model with one register per key; the state is its value, empty for none.
func model() porcupine.Model {
	registers := porcupine.NondeterministicModel{
		Partition: byKey,
		Init:      func() []any { return []any{""} },
		Step: func(state, input, _ any) (next []any) {
			for _, value := range input.(Operation).after(state.(string)) {
				next = append(next, value)
			}
			return next
		},
		DescribeOperation: func(input, _ any) string { return input.(Operation).String() },
		DescribeState:     func(state any) string { return fmt.Sprintf("%q", state) },
	}
	return registers.ToModel()
}

func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	keys := map[string]int{}
	for _, o := range history {
		key := o.Input.(Operation).Key
		if _, ok := keys[key]; !ok {
			keys[key] = len(parts)
			parts = append(parts, nil)
		}
		parts[keys[key]] = append(parts[keys[key]], o)
	}
	return parts
}

// after returns the values that the key may have after the operation, given the one
// before; none if the result is impossible.
func (o Operation) after(value string) []string {
	written, possible := o.effect(value)
	switch {
	case o.Result == Unknown && possible:
		return []string{value, written} // it took effect, or never will
	case o.Result == Unknown:
		return []string{value}
	case o.Result == Done && o.Kind == Read:
		if value == o.Value {
			return []string{value}
		}
	case o.Result == Done:
		if possible {
			return []string{written}
		}
	case o.Result == Conflict && o.Kind == Patch: // too many concurrent writes
		return []string{value}
	case o.Result == o.refusal(value):
		return []string{value}
	}
	return nil
}

// effect returns the value after a write, and whether the write is possible.
func (o Operation) effect(value string) (string, bool) {
	switch o.Kind {
	case Create:
		return o.Value, value == ""
	case Update:
		return o.Value, value != "" && value == o.Expected
	case Patch:
		return o.Value, value != ""
	case Delete:
		return "", value != ""
	}
	return value, true
}

// refusal returns the result with which an operation fails on a value, Done if it succeeds.
func (o Operation) refusal(value string) Result {
	switch {
	case o.Kind == Create && value != "":
		return Exists
	case o.Kind == Create:
		return Done
	case value == "":
		return Missing
	case o.Kind == Update && value != o.Expected:
		return Conflict
	}
	return Done
}

// String returns the operation for Visualize.
func (o Operation) String() string {
	kind := [...]string{"read", "create", "update", "patch", "delete"}[o.Kind]
	result := [...]string{"?", "done", "missing", "exists", "conflict"}[o.Result]
	return fmt.Sprintf("%s %s %q (expected %q): %s", kind, o.Key, o.Value, o.Expected, result)
}
