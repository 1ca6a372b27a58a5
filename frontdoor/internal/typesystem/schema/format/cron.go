package format

import (
	"fmt"
	"strings"
	_ "time/tzdata" // so that the zones that exist do not depend on the machine

	"github.com/robfig/cron/v3"
)

// cronSchedule is a cron schedule of five fields, or a macro, after an optional time zone.
func cronSchedule(value string) []string {
	if zoned(value) && !strings.Contains(value, " ") { // where cron/v3 panics
		return []string{fmt.Sprintf("expected exactly 5 fields, found 0: [%s]", value)}
	}
	if _, err := cron.ParseStandard(value); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func zoned(value string) bool {
	return strings.HasPrefix(value, "TZ=") || strings.HasPrefix(value, "CRON_TZ=")
}
