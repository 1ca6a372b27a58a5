package format

import (
	"strings"
	"testing"
)

// FuzzCronSchedule: additional spaces between the fields make no difference.
func FuzzCronSchedule(f *testing.F) {
	f.Fuzz(func(t *testing.T, value string) {
		problems := cronSchedule(value)
		if len(problems) == 0 && !strings.ContainsAny(value, "=@") {
			if again := cronSchedule(strings.Join(strings.Fields(value), "  ")); len(again) > 0 {
				t.Errorf("%q is a schedule, and with more space %v", value, again)
			}
		}
		for _, p := range problems {
			if len(p) > 10*len(value)+500 {
				t.Errorf("%d bytes make a problem of %d", len(value), len(p))
			}
		}
	})
}

// FuzzFormats validates strings with every format: the results are deterministic and of
// limited length.
func FuzzFormats(f *testing.F) {
	f.Fuzz(func(t *testing.T, value string) {
		for name := range formats {
			check, err := Named(name)
			if err != nil {
				t.Fatal(err)
			}
			first, second := check(value), check(value)
			if strings.Join(first, "\n") != strings.Join(second, "\n") {
				t.Errorf("%s of %q: %v and then %v", name, value, first, second)
			}
			if size := len(strings.Join(first, "\n")); size > 16*len(value)+4000 {
				t.Errorf("%s: %d bytes make problems of %d", name, len(value), size)
			}
		}
	})
}
