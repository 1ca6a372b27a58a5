package run

import (
	"context"
	"fmt"
	"time"
)

// graceFlag is the flag of the maximum duration of the start.
const graceFlag = "livez-grace-period"

// limitStart adds a health check that fails when the start takes longer than
// --livez-grace-period. An invalid flag is a usage error.
func (r *Running) limitStart(s *settings, began time.Time) error {
	grace, _ := s.flags.GetDuration(graceFlag)
	if grace < 0 {
		return Usagef("--%s: %v is negative", graceFlag, grace)
	}
	if grace == 0 {
		return nil
	}
	r.base.Health.Add(Check{Name: "startup", Live: true, Probe: func(context.Context) error {
		if took := time.Since(began); !r.process.started.Load() && took > grace {
			return fmt.Errorf("not started after %v", took.Round(time.Millisecond))
		}
		return nil
	}})
	return nil
}
