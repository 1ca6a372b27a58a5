package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cronSchedule is five fields of a cron schedule, or a macro, after a time zone that
// may be given.
func cronSchedule(value string) []string {
	if zone, rest, ok := strings.Cut(value, " "); ok && (strings.HasPrefix(zone, "TZ=") || strings.HasPrefix(zone, "CRON_TZ=")) {
		value = strings.TrimSpace(rest)
	}
	if err := checkSchedule(value); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// macros are the schedules that have a name.
var macros = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

func checkSchedule(value string) error {
	if slices.Contains(macros, value) {
		return nil
	}
	if every, ok := strings.CutPrefix(value, "@every "); ok {
		if _, err := time.ParseDuration(every); err != nil {
			return fmt.Errorf("failed to parse duration %s: %w", value, err)
		}
		return nil
	}
	if strings.HasPrefix(value, "@") {
		return fmt.Errorf("unrecognized descriptor: %s", value)
	}
	parts := strings.Fields(value)
	if len(parts) != len(cronRanges) {
		return fmt.Errorf("expected exactly %d fields, found %d: %v", len(cronRanges), len(parts), parts)
	}
	for i, part := range parts {
		for span := range strings.SplitSeq(part, ",") {
			if err := cronRanges[i].check(span); span != "" && err != nil {
				return err
			}
		}
	}
	return nil
}

// cronRange is what one field of a schedule may hold.
type cronRange struct {
	low, high int
	names     string // three letters each, from low on
}

var cronRanges = [...]cronRange{{0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 6, "sunmontuewedthufrisat"}}

// check tells what is wrong with a value or range, and the step through it.
func (c cronRange) check(part string) error {
	span, step, stepped := strings.Cut(part, "/")
	from, to, err := c.span(span, stepped)
	if err != nil {
		return err
	}
	every := 1
	if stepped {
		if every, err = parseNumber(step); err != nil {
			return err
		}
	}
	switch {
	case from < c.low:
		return fmt.Errorf("beginning of range (%d) below minimum (%d): %s", from, c.low, part)
	case to > c.high:
		return fmt.Errorf("end of range (%d) above maximum (%d): %s", to, c.high, part)
	case from > to:
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d): %s", from, to, part)
	case every == 0:
		return fmt.Errorf("step of range should be a positive number: %s", part)
	}
	return nil
}

// span returns the bounds of a range. A single value is the start of all that follow
// when there is a step, as it has nothing to step through itself.
func (c cronRange) span(span string, stepped bool) (from, to int, err error) {
	low, high, ranged := strings.Cut(span, "-")
	if low == "*" || low == "?" {
		return c.low, c.high, nil
	}
	if from, err = c.value(low); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		to, err = c.value(high)
	case stepped:
		to = c.high
	default:
		to = from
	}
	return from, to, err
}

func (c cronRange) value(s string) (int, error) {
	if i := strings.Index(c.names, strings.ToLower(s)); len(s) == 3 && i >= 0 && i%3 == 0 {
		return c.low + i/3, nil
	}
	return parseNumber(s)
}

func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("failed to parse int from %s: %w", s, err)
	case n < 0:
		return 0, fmt.Errorf("negative number (%d) not allowed: %s", n, s)
	}
	return n, nil
}
