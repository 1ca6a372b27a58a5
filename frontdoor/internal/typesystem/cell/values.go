package cell

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// What is shown where there is nothing to show.
const (
	None    = "<none>"
	Unset   = "<unset>"
	Unknown = "<unknown>"
)

// Join joins the texts of a list's items, leaving out empty ones.
func Join(list rawjson.Value, separator string, text func(rawjson.Value) string) string {
	var texts []string
	for item := range list.Items() {
		if t := text(item); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, separator)
}

// Texts returns the texts of a list.
func Texts(list rawjson.Value) []string {
	var all []string
	for item := range list.Items() {
		all = append(all, item.Text())
	}
	return all
}

// AtMost joins the first texts and counts the others.
func AtMost(n int, texts []string) string {
	if len(texts) <= n {
		return strings.Join(texts, ",")
	}
	return strings.Join(texts[:n], ",") + " + " + Count(len(texts)-n) + " more..."
}

// OrNone joins texts by commas; None without any.
func OrNone(texts []string) string { return cmp.Or(strings.Join(texts, ","), None) }

// Condition returns the condition of a type among several.
func Condition(conditions rawjson.Value, kind string) rawjson.Value {
	for c := range conditions.Items() {
		if c.Get("type").String() == kind {
			return c
		}
	}
	return nil
}

// Count writes a number.
func Count(n int) string { return strconv.Itoa(n) }

// Fraction returns n/of.
func Fraction(n, of int64) string {
	return strconv.FormatInt(n, 10) + "/" + strconv.FormatInt(of, 10)
}

// Since returns the time of a timestamp, whose age is shown; <unknown> when it
// is none.
func Since(v rawjson.Value) any {
	if t, ok := Timestamp(v); ok {
		return t
	}
	return Unknown
}

// Timestamp reads a timestamp, which may be absent.
func Timestamp(v rawjson.Value) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, v.String())
	return t, err == nil
}
