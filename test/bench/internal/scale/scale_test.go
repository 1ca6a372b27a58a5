package scale

import (
	"math"
	"testing"
)

// costs are round numbers: a front door that follows, shares and sends, a bus and a store.
func costs() Costs {
	return Costs{
		FrontDoor: {Idle: Use{CPU: 0.01}, Follow: Use{1e-4, 1000}, Shared: Use{1e-3, 4000}, Event: Use{1e-5, 600}, Memory: 100e6, PerObject: 2, AtMost: 300e6, PerWatch: 25e3},
		nats:      {Each: Use{1e-5, 1000}, Hop: Use{2e-5, 1000}, Memory: 20e6},
		store:     {Each: Use{1e-4, 2000}, Shared: Use{3e-4, 3000}, Memory: 50e6, PerObject: 1.5},
	}
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want)+1e-12 }

func TestNeeds(t *testing.T) {
	load := Load{Objects: 10_000, ObjectBytes: 6000, Watchers: 1000, Changes: 100, Selected: 0.1, Followed: 1}
	for _, c := range []struct {
		what     string
		replicas Replicas
		service  string
		want     Need
	}{
		// Idle, then 100 changes followed and shared, and 10,000 events.
		{"one front door", nil, FrontDoor, Need{Use: Use{0.01 + 0.01 + 0.1 + 0.1, 100e3 + 400e3 + 6e6}, Memory: 100e6 + 120e6 + 25e6}},
		{"two share writes and watchers, and both follow", Replicas{FrontDoor: 2}, FrontDoor, Need{Use: Use{0.01 + 0.01 + 0.05 + 0.05, 100e3 + 200e3 + 3e6}, Memory: 100e6 + 120e6 + 12.5e6}},
		{"a message to one front door", nil, nats, Need{Use: Use{0.003, 200e3}, Memory: 20e6}},
		{"to three of them", Replicas{FrontDoor: 3}, nats, Need{Use: Use{0.007, 400e3}, Memory: 20e6}},
		{"every store has all objects", Replicas{store: 3}, store, Need{Use: Use{0.01 + 0.01, 200e3 + 100e3}, Memory: 50e6 + 90e6}},
	} {
		for _, got := range costs().Needs(load, c.replicas) {
			if got.Service == c.service && (!near(got.CPU, c.want.CPU) || !near(got.Bytes, c.want.Bytes) || !near(got.Memory, c.want.Memory)) {
				t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
			}
		}
	}
}

func TestFirstWall(t *testing.T) {
	machine := Machine{Cores: 2, Memory: 1e9, Bytes: 100e6}
	for _, c := range []struct {
		load Load
		want string
	}{
		{Load{Changes: 1990, Followed: 1}, "CPU of frontdoor: 110 % used"},
		{Load{Objects: 1e6, ObjectBytes: 1000}, "memory of store: 155 % used"},
		{Load{Changes: 100, Watchers: 4000, Selected: 1, Followed: 1}, "network of frontdoor: 240 % used"},
	} {
		if got := FirstWall(costs().Needs(c.load, nil), machine).String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.load, got, c.want)
		}
	}
}

// TestEnough: more front doors until each uses half of its machine, as long as that helps.
func TestEnough(t *testing.T) {
	machine := Machine{Cores: 2, Memory: 1e9, Bytes: 1e9}
	for _, c := range []struct {
		changes float64
		want    int
	}{{100, 1}, {2000, 3}, {20_000, 0}} {
		got := costs().Enough(Load{Changes: c.changes, Followed: 1}, machine, 0.5, FrontDoor)
		if got[FrontDoor] != c.want {
			t.Errorf("%v changes a second: %d front doors, want %d", c.changes, got[FrontDoor], c.want)
		}
	}
}

// TestCosts: a calibration that was computed from costs leads back to them.
func TestCosts(t *testing.T) {
	want := costs()
	want[hub] = Cost{Each: Use{2e-4, 2500}, Memory: 25e6, AtMost: hubCaches}
	want[etcd] = Cost{Each: Use{5e-4, 9000}, Memory: 30e6}
	door := want[FrontDoor]
	door.AtMost = frontDoorCaches
	want[FrontDoor] = door
	db := want[store]
	db.Each, db.Shared = want[hub].Each, Use{2e-4, 2500}
	want[store] = db
	bus := want[nats]
	bus.Each = bus.Hop
	want[nats] = bus
	step := func(changes, watchers, objects float64) Step {
		const seconds = 10
		s := Step{Seconds: seconds, Changes: changes * seconds, Events: changes * watchers * seconds, Watchers: watchers, Bytes: objects, Samples: map[string]Sample{}}
		for name, c := range want {
			// All clients use the first front door.
			use := c.Idle.plus(c.Each.plus(c.Follow).times(changes)).plus(c.Shared.times(changes)).plus(c.Hop.times(2 * changes)).plus(c.Event.times(changes * watchers))
			s.Samples[name] = Sample{use.times(seconds), c.Memory + c.PerObject*objects + c.PerWatch*watchers}
		}
		s.Samples[Follower] = Sample{want[FrontDoor].Idle.plus(want[FrontDoor].Follow.times(changes)).times(seconds), 0}
		return s
	}
	got := Calibration{step(0, 0, 0), step(50, 0, 0), step(50, 100, 0), step(0, 0, 1e6), step(0, 1000, 1e6)}.Costs()
	if len(got) != len(want) {
		t.Errorf("%d services, want %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		for what, pair := range map[string][2]float64{
			"idle": {g.Idle.CPU, w.Idle.CPU}, "each": {g.Each.CPU, w.Each.CPU}, "follow": {g.Follow.CPU, w.Follow.CPU}, "shared": {g.Shared.CPU, w.Shared.CPU}, "hop": {g.Hop.CPU, w.Hop.CPU},
			"event": {g.Event.CPU, w.Event.CPU}, "bytes of an event": {g.Event.Bytes, w.Event.Bytes}, "memory": {g.Memory, w.Memory},
			"of objects": {g.PerObject, w.PerObject}, "at most": {g.AtMost, w.AtMost}, "of a watcher": {g.PerWatch, w.PerWatch},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-6*pair[1]+1e-9 {
				t.Errorf("%s of %s: %v, want %v", what, name, pair[0], pair[1])
			}
		}
	}
}
