// Package process reads what processes and the machine have used since their start. On
// systems other than Linux only zeros are returned.
package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of the machine's CPU times: a hundredth of a second.
const clockTick = 10 * time.Millisecond

// CPU returns the CPU time that processes have used, to the nanosecond.
func CPU(pids ...int) (total time.Duration) {
	for _, pid := range pids {
		var used unix.Timespec
		if unix.ClockGettime(processClock(pid), &used) == nil {
			total += time.Duration(used.Nano())
		}
	}
	return total
}

// processClock returns the ID of a process's CPU-time clock, like clock_getcpuclockid(3).
func processClock(pid int) int32 { return int32(^pid<<3 | 2) }

// Resident returns the resident bytes of processes.
func Resident(pids ...int) (total int64) {
	for _, pid := range pids {
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

// Busy returns the CPU time that the whole machine has used.
func Busy() (total time.Duration) {
	content, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(content), "\n")
	for i, field := range strings.Fields(line) {
		ticks, _ := strconv.Atoi(field)
		switch i {
		case 1, 2, 3, 6, 7: // user, nice, system, interrupts
			total += time.Duration(ticks) * clockTick
		}
	}
	return total
}

// SystemCalls returns how many system calls of a process have read or written.
func SystemCalls(pid int) int64 { return counters(pid, "syscr", "syscw") }

// Moved returns how many bytes a process has read and written, from and to connections and files.
func Moved(pid int) int64 { return counters(pid, "rchar", "wchar") }

// counters sums counters of a process's input and output.
func counters(pid int, names ...string) (sum int64) {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && slices.Contains(names, name) {
			sum += n
		}
	}
	return sum
}
