package format

import (
	"strconv"
	"strings"
	"time"
)

// cronSchedule is five fields of a cron schedule, or a macro.
func cronSchedule(value string) []string {
	wrong := []string{"must be a cron schedule of five fields, or one of @yearly, @monthly, @weekly, @daily, @hourly, @every <duration>"}
	value = strings.TrimSpace(value)
	if zone, rest, ok := strings.Cut(value, " "); ok && (strings.HasPrefix(zone, "TZ=") || strings.HasPrefix(zone, "CRON_TZ=")) {
		value = strings.TrimSpace(rest)
	}
	switch value {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
		return nil
	}
	if every, ok := strings.CutPrefix(value, "@every "); ok {
		if _, err := time.ParseDuration(every); err != nil {
			return wrong
		}
		return nil
	}
	parts := strings.Fields(value)
	if len(parts) != len(cronRanges) {
		return wrong
	}
	for i, part := range parts {
		if !cronRanges[i].accepts(part) {
			return wrong
		}
	}
	return nil
}

// cronRange is what one field of a schedule may hold.
type cronRange struct {
	low, high int
	names     string // three letters each, from low on
}

var cronRanges = [...]cronRange{{0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 7, "sunmontuewedthufrisat"}}

// accepts tells whether a field is a list of values, ranges and steps.
func (c cronRange) accepts(field string) bool {
	for part := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(part, "/")
		if n, err := strconv.Atoi(step); stepped && (err != nil || n <= 0) {
			return false
		}
		if span == "*" || span == "?" {
			continue
		}
		low, high, ranged := strings.Cut(span, "-")
		from, ok := c.value(low)
		if !ok {
			return false
		}
		if ranged {
			if to, ok := c.value(high); !ok || to < from {
				return false
			}
		}
	}
	return true
}

func (c cronRange) value(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= c.low && n <= c.high
	}
	if i := strings.Index(c.names, strings.ToLower(s)); len(s) == 3 && i >= 0 && i%3 == 0 {
		return c.low + i/3, true
	}
	return 0, false
}
