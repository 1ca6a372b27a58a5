package embedded

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// TestTheStartDoesNotWaitForAnElectionTimeout starts a member whose first tick is after the
// end of the test: with no log, then with one that begins with the membership and that etcd
// compacts in memory while it is applied.
func TestTheStartDoesNotWaitForAnElectionTimeout(t *testing.T) {
	dir := t.TempDir()
	c := config(dir, Config{QuotaBytes: defaultQuota, NoSync: true, Log: slog.New(slog.DiscardHandler)})
	c.TickMs, c.ElectionMs = 10_000, 50_000
	for range 3 {
		member, err := startElected(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-member.Server.ReadyNotify():
			put(t, member, 300)
		case <-time.After(time.Duration(c.TickMs) * time.Millisecond):
			t.Error("the member is not ready before its first tick")
		}
		member.Close()
	}
}

func put(t *testing.T, member *embed.Etcd, n int) {
	t.Helper()
	client := v3client.New(member.Server)
	for i := range n {
		if _, err := client.Put(t.Context(), fmt.Sprint(i), "v"); err != nil {
			t.Fatal(err)
		}
	}
}

var kills = flag.Int("kills", 6, "how often TestMembersThatAreKilled kills a member")

// memberDir is the variable with the data directory of a member that is to be killed.
const memberDir = "PORTICO_TEST_MEMBER_DIR"

// TestMembersThatAreKilled kills members at random moments of their start and of writing,
// over one data directory, whose log passes several snapshots. None ends for another reason.
func TestMembersThatAreKilled(t *testing.T) {
	if dir := os.Getenv(memberDir); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	var written, ready int
	for n := range *kills {
		member := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMembersThatAreKilled$")
		member.Env = append(os.Environ(), memberDir+"="+dir)
		var errs bytes.Buffer
		member.Stderr = &errs
		out, err := member.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := member.Start(); err != nil {
			t.Fatal(err)
		}
		after := time.Duration(rand.Int64N(int64(100 * time.Millisecond)))
		lines := bufio.NewScanner(out)
		if n%3 != 2 && lines.Scan() { // each third is killed while it starts
			if _, err := fmt.Sscanf(lines.Text(), "ready with %d keys", &written); err != nil {
				t.Errorf("the member said %q\n%s", lines.Text(), &errs)
			}
			ready++
		}
		time.AfterFunc(after, func() { _ = member.Process.Kill() })
		for lines.Scan() { // to the end of the process
		}
		var exit *exec.ExitError
		if err := member.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("member %d ended with %v, not killed\n%s", n, err, &errs)
		}
	}
	if ready == 0 || written == 0 {
		t.Errorf("%d of %d members were ready, the last one with %d keys", ready, *kills, written)
	}
}

// writeUntilKilled prints how many keys there are when the member is ready, and then adds keys.
func writeUntilKilled(t *testing.T, dir string) {
	s, err := Open(t.Context(), Config{Dir: dir, NoSync: true, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := s.Client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("ready with %d keys\n", keys.Count)
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ; i++ {
				if _, err := s.Client.Put(context.Background(), fmt.Sprintf("%d/%d/%d", keys.Count, w, i), strings.Repeat("v", 100)); err != nil {
					panic(err)
				}
			}
		})
	}
	writers.Wait()
}
