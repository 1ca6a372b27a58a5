package field

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services"
)

// Reasons that only fields have.
const (
	causeNotFound = "FieldValueNotFound"
	causeTooMany  = "FieldValueTooMany"
)

const (
	// maxErrors is the limit on what is collected: many more than a client is told, so
	// that those that it is told are the first ones in all ordinary cases.
	maxErrors = 1000
	// maxText is the limit on the text of all that is collected, in bytes: a message may
	// show the whole value.
	maxText = 4 << 20
)

// Errors collects what is wrong with an object. The zero value is empty. Beyond a limit
// it only counts.
type Errors struct {
	causes []services.StatusCause
	text   int // bytes of all causes
	more   int // that were not collected
}

// full reports whether nothing more is collected, and counts what is not.
func (e *Errors) full() bool {
	if len(e.causes) < maxErrors && e.text < maxText {
		return false
	}
	e.more++
	return true
}

// Full reports whether the limit on what is collected is reached: a walk may stop.
func (e *Errors) Full() bool { return len(e.causes) >= maxErrors || e.text >= maxText }

// Any reports whether anything is wrong so far.
func (e *Errors) Any() bool { return len(e.causes) > 0 }

// Causes returns what was collected, in a steady order and each once.
func (e *Errors) Causes() []services.StatusCause {
	slices.SortStableFunc(e.causes, func(a, b services.StatusCause) int {
		if by := strings.Compare(a.Field, b.Field); by != 0 {
			return by
		}
		return strings.Compare(a.Message, b.Message)
	})
	e.causes = slices.Compact(e.causes)
	return e.causes
}

func (e *Errors) add(reason string, at *Path, message string) {
	e.append(services.StatusCause{Reason: reason, Message: message, Field: at.String()})
}

func (e *Errors) append(c services.StatusCause) {
	e.causes = append(e.causes, c)
	e.text += len(c.Field) + len(c.Message)
}

// Join notes all that others has noted.
func (e *Errors) Join(others *Errors) {
	for _, c := range others.causes {
		if !e.full() {
			e.append(c)
		}
	}
	e.more += others.more
}

// Required notes a value that is missing.
func (e *Errors) Required(at *Path, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseRequired, at, with("Required value", why))
}

// Invalid notes a value that breaks a rule.
func (e *Errors) Invalid(at *Path, value any, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseInvalid, at, with("Invalid value: "+Display(value), why))
}

// TypeInvalid notes a value of another JSON type than its schema asks for.
func (e *Errors) TypeInvalid(at *Path, value any, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseTypeInvalid, at, with("Invalid value: "+Display(value), why))
}

// Forbidden notes a value that may not be there.
func (e *Errors) Forbidden(at *Path, why string) {
	if e.full() {
		return
	}
	e.add(services.CauseForbidden, at, with("Forbidden", why))
}

// Duplicate notes a value that is given twice.
func (e *Errors) Duplicate(at *Path, value any) {
	if e.full() {
		return
	}
	e.add(services.CauseDuplicate, at, "Duplicate value: "+Display(value))
}

// NotFound notes a reference to something that is not there.
func (e *Errors) NotFound(at *Path, value any) {
	if e.full() {
		return
	}
	e.add(causeNotFound, at, "Not found: "+Display(value))
}

// NotSupported notes a value that is none of the allowed ones.
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

// TooLong notes a value of more than limit bytes.
func (e *Errors) TooLong(at *Path, limit int) {
	if e.full() {
		return
	}
	e.add(services.CauseTooLong, at, fmt.Sprintf("Too long: may not be more than %d bytes", limit))
}

// TooMany notes a list of more than limit items.
func (e *Errors) TooMany(at *Path, count, limit int) {
	if e.full() {
		return
	}
	e.add(causeTooMany, at, fmt.Sprintf("Too many: %d: must have at most %d items", count, limit))
}

// Display writes a value for humans.
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
