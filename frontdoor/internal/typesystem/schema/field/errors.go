package field

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services"
)

// Reasons of causes that are not in package services.
const (
	causeNotFound = "FieldValueNotFound"
	causeTooMany  = "FieldValueTooMany"
)

// NoPath is the path of errors about a whole object in the form of Kubernetes.
const NoPath = "<nil>"

const (
	// maxErrors limits the collected errors: many more than one response lists, so that the
	// listed ones are normally the first ones in order.
	maxErrors = 1000
	// maxText limits the size of all collected errors, in bytes: a message may contain the
	// whole value.
	maxText = 4 << 20
)

// Errors collects the errors of an object. The zero value is empty. Beyond the limits,
// errors are only counted.
type Errors struct {
	causes []services.StatusCause
	text   int // bytes of all causes
	more   int // not collected
}

// full reports whether the limits are reached, and counts an error if they are.
func (e *Errors) full() bool {
	if len(e.causes) < maxErrors && e.text < maxText {
		return false
	}
	e.more++
	return true
}

// Count returns the number of errors so far.
func (e *Errors) Count() int { return len(e.causes) + e.more }

// Cut removes the errors after the first n.
func (e *Errors) Cut(n int) {
	e.more = max(0, n-len(e.causes))
	kept := e.causes[:min(n, len(e.causes))]
	for _, c := range e.causes[len(kept):] {
		e.text -= len(c.Field) + len(c.Message)
	}
	e.causes = kept
}

// Full reports whether the limits are reached: a walk may stop then.
func (e *Errors) Full() bool { return len(e.causes) >= maxErrors || e.text >= maxText }

// Any reports whether there are any errors so far.
func (e *Errors) Any() bool { return len(e.causes) > 0 }

// Causes returns the collected errors, sorted and without duplicates. What is said about
// the validation itself is the last.
func (e *Errors) Causes() []services.StatusCause {
	slices.SortStableFunc(e.causes, func(a, b services.StatusCause) int {
		if last := ofNothing(a); last != ofNothing(b) {
			if last {
				return 1
			}
			return -1
		}
		if by := strings.Compare(a.Field, b.Field); by != 0 {
			return by
		}
		return strings.Compare(a.Message, b.Message)
	})
	e.causes = slices.Compact(e.causes)
	return e.causes
}

// ofNothing reports whether a cause is about neither a field nor a value.
func ofNothing(c services.StatusCause) bool {
	return c.Field == NoPath && strings.HasPrefix(c.Message, "Invalid value: null: ")
}

func (e *Errors) add(reason string, at *Path, message string) {
	e.append(services.StatusCause{Reason: reason, Message: message, Field: at.String()})
}

func (e *Errors) append(c services.StatusCause) {
	e.causes = append(e.causes, c)
	e.text += len(c.Field) + len(c.Message)
}

// Add adds errors that were found elsewhere.
func (e *Errors) Add(causes ...services.StatusCause) {
	for _, c := range causes {
		if !e.full() {
			e.append(c)
		}
	}
}

// Join adds all errors of others.
func (e *Errors) Join(others *Errors) {
	for _, c := range others.causes {
		if !e.full() {
			e.append(c)
		}
	}
	e.more += others.more
}

// JoinBelow adds all errors of others, whose paths are relative to at. As in Kubernetes, there is a dot before an
// index, except in errors about the types of lists.
func (e *Errors) JoinBelow(at *Path, others *Errors) {
	for i, c := range others.causes {
		switch {
		case c.Field == "" || c.Field == NoPath:
			others.causes[i].Field = at.String()
		case c.Field[0] == '.', c.Field[0] == '[' && (c.Reason == services.CauseDuplicate || strings.HasSuffix(c.Message, "list-type map")):
			others.causes[i].Field = at.String() + c.Field
		default:
			others.causes[i].Field = at.String() + "." + c.Field
		}
	}
	e.Join(others)
}

// Required adds the error of a missing value.
func (e *Errors) Required(at *Path, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseRequired, at, with("Required value", why))
}

// Invalid adds the error of an invalid value.
func (e *Errors) Invalid(at *Path, value any, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseInvalid, at, with("Invalid value: "+Display(value), why))
}

// InvalidWhole adds the error of an object that is invalid as a whole, without its value.
func (e *Errors) InvalidWhole(at *Path, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseInvalid, at, with("Invalid value", why))
}

// TypeInvalid adds the error of a value of a wrong JSON type.
func (e *Errors) TypeInvalid(at *Path, value any, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseTypeInvalid, at, with("Invalid value: "+Display(value), why))
}

// Forbidden adds the error of a value that must not be set.
func (e *Errors) Forbidden(at *Path, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseForbidden, at, with("Forbidden", why))
}

// Duplicate adds the error of a repeated value.
func (e *Errors) Duplicate(at *Path, value any) {
	if e.full() {
		return
	}
	e.add(services.CauseDuplicate, at, "Duplicate value: "+Display(value))
}

// NotFound adds the error of a reference to something that does not exist.
func (e *Errors) NotFound(at *Path, value any) {
	if e.full() {
		return
	}
	e.add(causeNotFound, at, "Not found: "+Display(value))
}

// NotFoundIn is NotFound with what the value must be one of.
func (e *Errors) NotFoundIn(at *Path, value any, of string) {
	if e.full() {
		return
	}
	e.add(causeNotFound, at, with("Not found: "+Display(value), of))
}

// NotSupported adds the error of a value that is not one of the allowed ones.
func (e *Errors) NotSupported(at *Path, value any, allowed ...string) {
	if e.full() {
		return
	}
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = strconv.Quote(a)
	}
	e.add(services.CauseNotSupported, at, fmt.Sprintf("Unsupported value: %s: supported values: %s", Display(value), strings.Join(quoted, ", ")))
}

// TooLong adds the error of a value of more than limit bytes.
func (e *Errors) TooLong(at *Path, limit int) {
	if e.full() {
		return
	}
	e.add(services.CauseTooLong, at, "Too long: may not be more than "+counted(limit, "byte"))
}

// TooMany adds the error of a list of more than limit items.
func (e *Errors) TooMany(at *Path, count, limit int) {
	if e.full() {
		return
	}
	e.add(causeTooMany, at, fmt.Sprintf("Too many: %d: must have at most %s", count, counted(limit, "item")))
}

// counted returns a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Display returns a value in the form of messages: as JSON.
func Display(value any) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func with(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
