// Package monotonic returns times for storage in atomic integers. A time.Time has a monotonic clock, its Unix
// time does not: that jumps whenever the clock of the machine is set.
package monotonic

import "time"

// origin is long before the process began, so that the zero value is long ago.
var origin = time.Now().Add(-24 * time.Hour)

// Now returns the time in nanoseconds. It can be compared with other times of this process only.
func Now() int64 { return int64(time.Since(origin)) }

// Since returns the time since Now has returned then.
func Since(then int64) time.Duration { return time.Duration(Now() - then) }
