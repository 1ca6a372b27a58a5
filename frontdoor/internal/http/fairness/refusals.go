package fairness

import "time"

// longestRetry is the longest value of Retry-After, in seconds, and crowd how many
// refusals in that time make it longer.
const longestRetry, crowd = 8, 3

// refusals are those of a level. They determine after how many seconds a refused client should try again: twice as many
// while many are refused, so that clients do not all return at once, and half as many when few are.
type refusals struct {
	after int32 // 0 before the first one
	since int64 // when after was determined, in Unix seconds
	count int32 // since then
}

// add counts a refusal, and returns the seconds.
func (r *refusals) add(now time.Time) int32 {
	if r.after == 0 {
		r.after, r.since = 1, now.Unix()
	}
	for passed := now.Unix() - r.since; passed >= int64(r.after); passed = now.Unix() - r.since {
		r.since += int64(r.after)
		switch {
		case r.count >= crowd*r.after:
			r.after = min(2*r.after, longestRetry)
		case r.count < r.after:
			r.after = max(r.after/2, 1)
		}
		r.count = 0
		if r.after == 1 && passed > longestRetry { // nothing was refused for long
			r.since = now.Unix()
		}
	}
	r.count++
	return r.after
}
