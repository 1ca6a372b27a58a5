package attack

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Process is one process of the suite.
type Process struct {
	Name string
	PID  int
	// Log is the file of its output.
	Log string
}

// Pause stops the process until Resume, like a hanging machine.
func (p Process) Pause() error { return syscall.Kill(p.PID, syscall.SIGSTOP) }

// Resume continues a paused process.
func (p Process) Resume() error { return syscall.Kill(p.PID, syscall.SIGCONT) }

// kill kills the process.
func (p Process) kill() error { return syscall.Kill(p.PID, syscall.SIGKILL) }

// status returns a value of /proc/<pid>/status in bytes, 0 if there is none.
func (p Process) status(name string) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == name+":" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// Resident returns the resident memory of the process in bytes, 0 if it is unknown. Pages
// of files, such as the program and etcd's database, are not included: the system reclaims
// them when it needs memory.
func (p Process) Resident() int64 { return p.status("RssAnon") + p.status("RssShmem") }

// HighWater returns the maximum resident memory of the process in bytes, including pages of
// files.
func (p Process) HighWater() int64 { return p.status("VmHWM") }

// Panics returns the lines of its log with panics, fatal errors and data races.
func (p Process) Panics() (lines []string) {
	content, err := os.ReadFile(p.Log)
	if err != nil {
		return nil
	}
	scan := bufio.NewScanner(bytes.NewReader(content))
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		line := scan.Text()
		if strings.Contains(line, "panic") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "DATA RACE") {
			lines = append(lines, p.Name+": "+line[:min(len(line), 300)])
		}
	}
	return lines
}

// Process returns the process of a service; for the all-in-one, the only process.
func (t *Target) Process(name string) Process {
	for _, p := range t.Processes {
		if p.Name == name {
			return p
		}
	}
	return t.Processes[0]
}

// Resident returns the resident memory of all processes, in bytes.
func (t *Target) Resident() (sum int64) {
	for _, p := range t.Processes {
		sum += p.Resident()
	}
	return sum
}

func (t *Target) highWater() (sum int64) {
	for _, p := range t.Processes {
		sum += p.HighWater()
	}
	return sum
}
