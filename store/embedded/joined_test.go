package embedded_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/store/embedded"
)

// BenchmarkJoined creates objects of 1 KiB in transactions of their own, as the store does, and
// in transactions that join eight, each with a comparison of its own (decision 0054).
func BenchmarkJoined(b *testing.B) {
	value := strings.Repeat("x", 1<<10)
	for _, joined := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d", joined), func(b *testing.B) {
			s, err := embedded.Open(b.Context(), embedded.Config{Dir: b.TempDir(), Log: slog.New(slog.DiscardHandler), NoSync: true})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			began := spent(b)
			var writers sync.WaitGroup
			for w := range 64 / joined {
				writers.Go(func() {
					for i := 0; i < b.N/(64/joined)/joined+1; i++ {
						if err := create(b, s.Client, fmt.Sprintf("/%d/%d/", w, i), value, joined); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			writers.Wait()
			b.ReportMetric(float64((spent(b)-began).Microseconds())/float64(b.N), "µs-cpu/op")
		})
	}
}

// create creates objects in one transaction, in which each is created if it does not exist.
func create(b *testing.B, client *clientv3.Client, prefix, value string, n int) error {
	one := func(i int) (clientv3.Cmp, clientv3.Op, clientv3.Op) {
		key := fmt.Sprintf("%s%d", prefix, i)
		return clientv3.Compare(clientv3.ModRevision(key), "=", 0), clientv3.OpPut(key, value), clientv3.OpGet(key)
	}
	if n == 1 {
		cmp, put, get := one(0)
		_, err := client.Txn(b.Context()).If(cmp).Then(put).Else(get).Commit()
		return err
	}
	var all []clientv3.Op
	for i := range n {
		cmp, put, get := one(i)
		all = append(all, clientv3.OpTxn([]clientv3.Cmp{cmp}, []clientv3.Op{put}, []clientv3.Op{get}))
	}
	_, err := client.Txn(b.Context()).Then(all...).Commit()
	return err
}

// spent returns the CPU time of the process.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
