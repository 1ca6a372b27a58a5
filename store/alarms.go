package store

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// alarmsEvery is the polling interval of etcd's alarms.
const alarmsEvery = 5 * time.Second

// alarms tracks the alarms of an etcd cluster. With NOSPACE it accepts only deletions,
// with CORRUPT no writes at all.
type alarms struct {
	client *clientv3.Client
	log    *slog.Logger
	raised atomic.Pointer[[]string]
}

// watch polls the alarms until ctx ends, and logs changes.
func (a *alarms) watch(ctx context.Context) error {
	ticker := time.NewTicker(alarmsEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		a.poll(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	return nil
}

func (a *alarms) poll(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, alarmsEvery)
	defer cancel()
	// The status of one member has the alarms of all. The Alarm call itself would append
	// an entry to the raft log each time.
	answer, err := etcdserverpb.NewMaintenanceClient(a.client.ActiveConnection()).Status(bounded, &etcdserverpb.StatusRequest{})
	if err != nil {
		return // another check reports whether etcd responds
	}
	raised := answer.Errors
	before := a.raised.Swap(&raised)
	switch {
	case len(raised) > 0 && (before == nil || !slices.Equal(*before, raised)):
		a.log.Error("etcd has raised an alarm", "alarms", raised)
	case len(raised) == 0 && before != nil && len(*before) > 0:
		a.log.Info("etcd's alarms are cleared")
	}
}

// probe returns the alarms as an error.
func (a *alarms) probe(context.Context) error {
	if raised := a.raised.Load(); raised != nil && len(*raised) > 0 {
		return errors.New("etcd has raised an alarm: " + strings.Join(*raised, ", "))
	}
	return nil
}

// count returns the number of active alarms.
func (a *alarms) count() float64 {
	if raised := a.raised.Load(); raised != nil {
		return float64(len(*raised))
	}
	return 0
}
