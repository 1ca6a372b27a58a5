package cell

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// Texts of cells without a value.
const (
	None    = "<none>"
	Unset   = "<unset>"
	Unknown = "<unknown>"
)

// Join joins the texts of a list's items, omitting empty ones.
func Join(list rawjson.Value, separator string, text func(rawjson.Value) string) string {
	var texts []string
	for item := range list.Items() {
		if t := text(item); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, separator)
}

// Texts returns the items of a list of strings.
func Texts(list rawjson.Value) []string {
	var all []string
	for item := range list.Items() {
		all = append(all, item.Text())
	}
	return all
}

// AtMost joins the first n texts and adds the number of the others.
func AtMost(n int, texts []string) string {
	if len(texts) <= n {
		return strings.Join(texts, ",")
	}
	return strings.Join(texts[:n], ",") + " + " + Count(len(texts)-n) + " more..."
}

// OrNone joins texts by commas; it returns None if there are none.
func OrNone(texts []string) string { return cmp.Or(strings.Join(texts, ","), None) }

// Condition returns the condition of a type; nil if there is none.
func Condition(conditions rawjson.Value, kind string) rawjson.Value {
	for c := range conditions.Items() {
		if c.Get("type").String() == kind {
			return c
		}
	}
	return nil
}

// Count formats a number.
func Count(n int) string { return strconv.Itoa(n) }

// Fraction returns n/of.
func Fraction(n, of int64) string {
	return strconv.FormatInt(n, 10) + "/" + strconv.FormatInt(of, 10)
}

// Since returns the time of a timestamp, so that its age is shown; <unknown> if it is
// invalid.
func Since(v rawjson.Value) any {
	if t, ok := Timestamp(v); ok {
		return t
	}
	return Unknown
}

// Timestamp parses a timestamp. ok is false if it is absent or invalid.
func Timestamp(v rawjson.Value) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, v.String())
	return t, err == nil
}
