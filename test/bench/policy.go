package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// calmUsers are the users who send calmRate requests a second together.
	calmUsers, calmRate = 40, 340
	// policyEvery is the pause between two bindings that are written beside them.
	policyEvery = time.Second
)

// requestsOfUsers measures gets of users at a rate. If it is policy, a binding that concerns none of them is written
// beside them again and again.
func requestsOfUsers(policy bool) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		users := make(load.Clients, calmUsers)
		for i := range users {
			user := fmt.Sprintf("calm-%d", i)
			if err := m.permitted(ctx, user); err != nil {
				return err
			}
			c, err := load.Dial(ctx, m.as(user))
			if err != nil {
				return err
			}
			users[i] = c
		}
		group := vocabulary.K8s().Group("rbac.authorization.")
		administrator, err := m.dial(ctx)
		if err != nil {
			return err
		}
		var writing sync.WaitGroup
		defer writing.Wait()
		beside, end := context.WithCancel(ctx)
		defer end()
		return m.measure(ctx, func() (load.Samples, error) {
			if policy {
				writing.Go(func() {
					for load.Pause(beside, policyEvery) == nil {
						name := fmt.Sprintf("bench-%d", m.created.Add(1))
						body := fmt.Appendf(nil, `{"apiVersion":"%[2]s/v1","kind":"RoleBinding","metadata":{"name":"%[1]s"},"roleRef":{"apiGroup":"%[2]s","kind":"ClusterRole","name":"view"},`+
							`"subjects":[{"apiGroup":"%[2]s","kind":"User","name":"nobody"}]}`, name, group)
						if ensure(administrator, "/apis/"+group+"/v1/namespaces/"+written+"/rolebindings", body) != nil {
							return // the measurement is of the requests
						}
					}
				})
			}
			turns := load.NewSchedule(calmRate, int64(calmRate*greedyTimes*m.settings.duration.Seconds()))
			samples, lock := load.Samples{}, sync.Mutex{}
			err := load.Each(ctx, len(users), func(ctx context.Context, i int) error {
				for {
					_, due, more := turns.Next(ctx)
					if !more {
						return ctx.Err()
					}
					if _, err := users[i].Do(wire.Request{Method: http.MethodGet, Path: pods + "/" + podName(i)}, nil); err != nil {
						return err
					}
					lock.Lock()
					samples.Latencies = append(samples.Latencies, time.Since(due))
					lock.Unlock()
				}
			})
			samples.Operations = len(samples.Latencies)
			end()
			return samples, err
		})
	}
}
