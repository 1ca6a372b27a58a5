package memory

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// systemMemory returns the memory of the machine or, if that is less, of the control group
// of the process or the limit of GOMEMLIMIT, and how much of it is free or used for files only. Both are
// 0 if unknown.
func systemMemory() (total, free int64) {
	total, free = memoryBelow("/")
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 && (total == 0 || limit < total) {
		return limit, min(free, limit)
	}
	return total, free
}

// memoryBelow reads the files of the kernel below a root directory.
func memoryBelow(root string) (total, free int64) {
	machine := fields(root + "proc/meminfo")
	total, free = machine["MemTotal:"]<<10, machine["MemAvailable:"]<<10
	const group = "sys/fs/cgroup/"
	limit, used := number(root+group+"memory.max"), number(root+group+"memory.current")
	if limit > 0 && (total == 0 || limit < total) {
		files := fields(root + group + "memory.stat")["inactive_file"]
		return limit, max(0, limit-used+files)
	}
	return total, free
}

// number returns the number in a file; 0 if it holds another text.
func number(file string) int64 {
	content, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	return n
}

// fields returns the numbers in a file of lines with a name and a number.
func fields(file string) map[string]int64 {
	content, _ := os.ReadFile(file)
	all := map[string]int64{}
	for line := range strings.Lines(string(content)) {
		if words := strings.Fields(line); len(words) >= 2 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				all[words[0]] = n
			}
		}
	}
	return all
}
