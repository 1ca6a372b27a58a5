package ownservice

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestCounted: every front door knows how many run, also one without an address that others reach. One that
// has ended is no longer counted.
func TestCounted(t *testing.T) {
	v := vocabulary.K8s()
	types, err := catalogue.New(catalogue.Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	e, err := typesystem.New(types, typesystem.Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	store := fake.New(t).Store()
	networks, err := serviceips.ParseNetworks([]string{"10.0.0.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	ports, err := serviceips.ParsePorts("30000-30010")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	handlers := &writes.Handlers{Store: store, Admission: handlertest.AdmitAll{}, Vocabulary: v, Log: log,
		Addresses: serviceips.New(serviceips.Config{Store: store, Networks: networks, NodePorts: ports, Log: log})}
	counts := make([]int, 3)
	var keepers []*Keeper
	now := time.Unix(1000, 0)
	for i, self := range []records.Address{{IP: "10.1.0.1", Port: 6443}, {IP: "10.1.0.2", Port: 6443}, {}} {
		k := New(Config{Vocabulary: v, Store: store, Writes: handlers, Engine: func() *typesystem.Engine { return e }, Self: self, Announced: records.Announced{Instance: fmt.Sprint(i)},
			ClusterIP: networks.First(), Counted: func(n int) { counts[i] = n }, Log: log})
		k.now = func() time.Time { return now }
		keepers = append(keepers, k)
	}
	pass := func(of ...int) {
		t.Helper()
		for _, i := range of {
			if err := keepers[i].pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	pass(0, 1, 2, 0)
	if counts[0] != 3 || counts[1] != 2 || counts[2] != 3 { // the third began after the second counted
		t.Errorf("counted %v", counts)
	}
	if all, err := records.List(t.Context(), store); err != nil || len(all) != 3 || all[0].Instance != "0" || all[2].Instance != "2" {
		t.Errorf("announced: %v %v", all, err)
	}
	now = now.Add(renewEvery)
	pass(0, 2)
	now = now.Add(15*time.Second - renewEvery + 1)
	pass(0, 2)
	if counts[0] != 2 || counts[2] != 2 {
		t.Errorf("after one has ended: counted %v", counts)
	}
}
