package process

import "time"

// sampling is the interval of samples of the memory.
const sampling = 5 * time.Millisecond

// WatchMemory starts sampling the memory of processes. The returned function stops it and
// returns the maximum.
func WatchMemory(pids ...int) (peak func() int64) {
	stop, highest := make(chan struct{}), make(chan int64)
	go func() {
		ticks := time.NewTicker(sampling)
		defer ticks.Stop()
		most := Resident(pids...)
		for {
			select {
			case <-ticks.C:
				most = max(most, Resident(pids...))
			case <-stop:
				highest <- max(most, Resident(pids...))
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-highest
	}
}
