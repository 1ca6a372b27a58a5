package run

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// ParseError returns an ErrUsage for an error of pflag, in words that name no package of Go, with the flag that may be meant.
func ParseError(flags *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		return Usagef("unknown flag: --%s%s", unknown.GetSpecifiedName(), suggestion(flags, "--", unknown.GetSpecifiedName()))
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return Usagef("--%s: %v", invalid.GetFlag().Name, parseCause(invalid.Unwrap(), invalid.GetValue()))
	}
	return Usagef("%v", err)
}

// parseCause replaces the text of an error of strconv, which names functions of Go.
func parseCause(err error, value string) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalid.Unwrap()
	}
	var number *strconv.NumError
	switch {
	case !errors.As(err, &number):
		return err
	case errors.Is(number.Err, strconv.ErrRange):
		return fmt.Errorf("%q is out of range", value)
	case number.Func == "ParseBool":
		return fmt.Errorf("%q is neither true nor false", value)
	}
	return fmt.Errorf("%q is not a number", value)
}

// suggestion returns the end of a message that proposes the flag with a similar name, after a prefix; empty if there is none.
func suggestion(flags *pflag.FlagSet, prefix, name string) string {
	best, distance := "", len(name)/4+2
	flags.VisitAll(func(f *pflag.Flag) {
		if d := edits(name, f.Name); d < distance && !f.Hidden {
			best, distance = f.Name, d
		}
	})
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, best)
}

// edits returns the number of characters to insert, delete or replace to turn one text into the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
