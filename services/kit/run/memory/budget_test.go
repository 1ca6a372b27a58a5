package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// held is a cache of some size that fills its limit.
type held struct{ size, limit int64 }

func (h *held) Bytes() int64 { return h.size }

func (h *held) Bound(bytes int64) {
	h.limit = bytes
	h.size = min(h.size, bytes)
}

func TestBudget(t *testing.T) {
	const mib = 1 << 20
	free := int64(500 * mib)
	metrics := prometheus.NewRegistry()
	b := newBudget(120*mib, metrics, func() (int64, int64) { return 1000 * mib, free })
	small, middle, large := &held{}, &held{}, &held{}
	b.Add("large", large)
	b.Add("small", small)
	b.Add("middle", middle)
	for _, c := range []struct {
		what                 string
		sizes                [3]int64
		free                 int64
		small, middle, large int64
	}{
		{"all fit", [3]int64{10, 20, 60}, 500, 40, 50, 90},
		{"the largest gives way", [3]int64{10, 30, 90}, 500, 40, 55, 80},
		{"all are large", [3]int64{90, 90, 90}, 500, 40, 40, 40},
		{"memory is scarce", [3]int64{2, 30, 80}, 99, 10, 14, 14},
		{"it no longer is", [3]int64{2, 14, 14}, 500, 92, 104, 104},
	} {
		small.size, middle.size, large.size, free = c.sizes[0]*mib, c.sizes[1]*mib, c.sizes[2]*mib, c.free*mib
		b.enforce()
		if small.limit/mib != c.small || middle.limit/mib != c.middle || large.limit/mib != c.large {
			t.Errorf("%s: limits of %d, %d and %d MiB, want %d, %d and %d", c.what, small.limit/mib, middle.limit/mib, large.limit/mib, c.small, c.middle, c.large)
		}
		if sum := small.size + middle.size + large.size; sum > 120*mib {
			t.Errorf("%s: the caches hold %d MiB", c.what, sum/mib)
		}
	}
	want := `
# HELP portico_cache_bytes Approximate size of a cache in memory.
# TYPE portico_cache_bytes gauge
portico_cache_bytes{cache="large"} 1.4680064e+07
portico_cache_bytes{cache="middle"} 1.4680064e+07
portico_cache_bytes{cache="small"} 2.097152e+06
# HELP portico_memory_budget_bytes Limit on the sum of all caches.
# TYPE portico_memory_budget_bytes gauge
portico_memory_budget_bytes 1.2582912e+08
# HELP portico_memory_limit_bytes Memory of the machine, or of the control group if that has less.
# TYPE portico_memory_limit_bytes gauge
portico_memory_limit_bytes 1.048576e+09
`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestDefaultBudget(t *testing.T) {
	for _, c := range []struct{ total, want int64 }{{0, leastBudget}, {256 << 20, leastBudget}, {2 << 30, 128 << 20}, {1 << 40, mostBudget}} {
		if got := newBudget(0, nil, func() (int64, int64) { return c.total, c.total }).bytes; got != c.want {
			t.Errorf("of %d bytes: a budget of %d, want %d", c.total, got, c.want)
		}
	}
}

func TestSystemMemory(t *testing.T) {
	root := t.TempDir() + "/"
	write := func(file, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(root+file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, wantTotal, wantFree int64) {
		t.Helper()
		if total, free := memoryBelow(root); total != wantTotal || free != wantFree {
			t.Errorf("%s: %d and %d free, want %d and %d", what, total, free, wantTotal, wantFree)
		}
	}
	expect("no files", 0, 0)
	write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:  300 kB\n")
	expect("a machine", 1000<<10, 300<<10)
	write("sys/fs/cgroup/memory.max", "max\n")
	expect("a group without a limit", 1000<<10, 300<<10)
	write("sys/fs/cgroup/memory.max", "10000\n")
	write("sys/fs/cgroup/memory.current", "9000\n")
	write("sys/fs/cgroup/memory.stat", "anon 6000\ninactive_file 2000\n")
	expect("a group with a limit", 10000, 3000)
	if total, free := systemMemory(); total <= 0 || free <= 0 || free > total {
		t.Errorf("this machine has %d bytes, %d free", total, free)
	}
}
