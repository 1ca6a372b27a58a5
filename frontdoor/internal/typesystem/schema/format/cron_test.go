package format

import (
	"slices"
	"testing"
)

// TestCronSchedule checks the messages of release 1.21, which come from cron/v3.
func TestCronSchedule(t *testing.T) {
	for value, want := range map[string]string{
		"*/5 * * * *":                        "",
		"0 0 1 jan sun-tue":                  "",
		"@daily":                             "",
		"@every 1h30m":                       "",
		"TZ=UTC 0 0 * * *":                   "",
		"CRON_TZ=Europe/Berlin 0 0 * * *":    "",
		"TZ=Europe/Nowhere 0 0 * * *":        "provided bad location Europe/Nowhere: unknown time zone Europe/Nowhere",
		"CRON_TZ=../../etc/passwd * * * * *": "provided bad location ../../etc/passwd: time: invalid location name",
		"TZ=UTC":                             "expected exactly 5 fields, found 0: [TZ=UTC]",
		"TZ=UTC ":                            "expected exactly 5 fields, found 0: []",
		"* * * *":                            "expected exactly 5 fields, found 4: [* * * *]",
		"60 * * * *":                         "end of range (60) above maximum (59): 60",
		"* * 0 * *":                          "beginning of range (0) below minimum (1): 0",
		"5-1 * * * *":                        "beginning of range (5) beyond end of range (1): 5-1",
		"*/0 * * * *":                        "step of range should be a positive number: */0",
		"1-2-3 * * * *":                      "too many hyphens: 1-2-3",
		"1/2/3 * * * *":                      "too many slashes: 1/2/3",
		"a * * * *":                          `failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax`,
		"@fortnightly":                       "unrecognized descriptor: @fortnightly",
		"@every soon":                        `failed to parse duration @every soon: time: invalid duration "soon"`,
	} {
		var problems []string
		if want != "" {
			problems = []string{want}
		}
		if got := cronSchedule(value); !slices.Equal(got, problems) {
			t.Errorf("%q: got %q, want %q", value, got, problems)
		}
	}
}
