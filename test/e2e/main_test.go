package e2e

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// together is how many tests run at the same time by default. They mostly wait: for
// processes that start and stop, for leases and probes. Each has a suite of its own.
const together = 5

func TestMain(m *testing.M) {
	flag.Parse()
	if limit := flag.Lookup("test.parallel"); limit.Value.String() == limit.DefValue {
		_ = limit.Value.Set(strconv.Itoa(max(together, runtime.GOMAXPROCS(0))))
	}
	os.Exit(m.Run())
}
