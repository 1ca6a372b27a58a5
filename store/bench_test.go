package store

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/services"
)

// padded is the content of an object of about 2.5 KiB.
func padded(name string) services.Content {
	c := content(name, padding)
	c.Labels = map[string]string{"app": "web", "version": "1"}
	return c
}

var padding = strings.Repeat("x", 2500)

// filled is a store with 10,000 objects of about 2.5 KiB.
func filled(b *testing.B) *Store {
	s := replica(b, openEtcd(b))
	var next atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for i := next.Add(1) - 1; i < 10_000; i = next.Add(1) - 1 {
			name := fmt.Sprintf("p%05d", i)
			if _, err := s.Create(b.Context(), services.CreateRequest{Key: pod(name), Content: padded(name)}); err != nil {
				b.Error(err)
				return
			}
		}
		for pb.Next() {
		}
	})
	b.ResetTimer()
	return s
}

func BenchmarkGet(b *testing.B) {
	for name, mode := range map[string]services.ReadMode{"any": services.AnyRevision, "most-recent": services.MostRecent} {
		b.Run(name, func(b *testing.B) {
			s := replica(b, openEtcd(b))
			o := create(b, s, "a")
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Get(b.Context(), services.GetRequest{Key: o.Key, Read: services.Read{Mode: mode}}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func BenchmarkList10000(b *testing.B) {
	s := filled(b)
	for b.Loop() {
		r, n := services.ListRequest{GroupResource: pods}, 0
		for {
			page, err := s.List(b.Context(), r)
			if err != nil {
				b.Fatal(err)
			}
			n += len(page.Objects)
			if page.Next == "" {
				break
			}
			r.After, r.Read = page.Next, exactly(page.Revision)
		}
		if n != 10_000 {
			b.Fatalf("listed %d objects", n)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	s := replica(b, openEtcd(b))
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			name := fmt.Sprintf("p%d", next.Add(1))
			if _, err := s.Create(b.Context(), services.CreateRequest{Key: pod(name), Content: padded(name)}); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	s := replica(b, openEtcd(b))
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		name := fmt.Sprintf("p%d", next.Add(1))
		o, err := s.Create(b.Context(), services.CreateRequest{Key: pod(name), Content: padded(name)})
		for err == nil && pb.Next() {
			o, err = s.Update(b.Context(), services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: padded(name)})
		}
		if err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkDelete creates each object too.
func BenchmarkDelete(b *testing.B) {
	s := replica(b, openEtcd(b))
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			name := fmt.Sprintf("p%d", next.Add(1))
			o, err := s.Create(b.Context(), services.CreateRequest{Key: pod(name), Content: padded(name)})
			if err == nil {
				_, err = s.Delete(b.Context(), services.DeleteRequest{Key: o.Key, Revision: o.Revision})
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}
