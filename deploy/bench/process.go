package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc: a hundredth of a second on Linux.
const clockTick = 10 * time.Millisecond

// cpu returns the CPU time that the target's processes have used.
func (t *target) cpu() (total time.Duration) {
	for _, pid := range t.pids {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(content), ") ") // the name before it may hold spaces
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		total += time.Duration(user+system) * clockTick
	}
	return total
}

// memory returns the resident bytes of the target's processes.
func (t *target) memory() (total int64) {
	for _, pid := range t.pids {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		fields := strings.Fields(string(content))
		if len(fields) < 2 {
			continue
		}
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		total += pages * int64(os.Getpagesize())
	}
	return total
}
