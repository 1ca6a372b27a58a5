package main

import (
	"context"
	"fmt"

	"github.com/portico-platform/portico/deploy/bench/internal/figures"
	"github.com/portico-platform/portico/services/vocabulary"
)

// The parts of the report.
const (
	reads  = "Reads"
	writes = "Writes"
)

// scenario is one measurement: the load and its goals.
type scenario struct {
	name  string
	part  string
	pods  bool // it needs the pods
	run   func(ctx context.Context, m *measurement) error
	goals []figures.Goal
}

// apart is the limit on the CPU time of separate processes in multiples of the all-in-one's.
const apart = 1.6

// aboveFloor is the limit on the CPU time and latency of a list in multiples of those of a
// plain TLS server that sends the same bytes.
const aboveFloor = 1.3

// The levels of a comparison with an earlier version: the probability of a failure without
// any difference, and the ratio up to which a difference is accepted.
const failureLevel, tolerated = 0.05, 1.02

// pairs returns how versions are compared; nil if they are not.
func (s *settings) pairs() *figures.Pairs {
	if s.before == "" {
		return nil
	}
	return &figures.Pairs{Metric: figures.ServerCPU, Level: failureLevel, Tolerance: tolerated}
}

// scenarios returns all measurements, with the goals in comparison with the reference
// server, the floor or the all-in-one.
func (s *settings) scenarios() []scenario {
	all := scenarios()
	if s.floor {
		return []scenario{{"list as JSON, repeated", reads, true, repeatedList("application/json"),
			[]figures.Goal{figures.AtMost(figures.ServerCPU, aboveFloor), figures.AtMost(figures.Median, aboveFloor)}}}
	}
	if s.processes != "" {
		for i := range all {
			all[i].goals = []figures.Goal{figures.AtMost(figures.ServerCPU, apart)}
		}
	}
	return all
}

// scenarios returns all measurements in order: first those that need servers that have
// only created the pods, last those that add objects.
func scenarios() []scenario {
	names := vocabulary.K8s()
	json, protobuf := "application/json", names.Protobuf
	table := "application/json;as=Table;v=v1;g=" + names.Group("meta.")

	type goals = []figures.Goal
	cpu := func(most float64) figures.Goal { return figures.AtMost(figures.ServerCPU, most) }
	took := func(most float64) figures.Goal { return figures.AtMost(figures.Median, most) }
	rate := func(least float64) figures.Goal { return figures.AtLeast(figures.Throughput, least) }
	tail, atRest := figures.AtMost(figures.Tail, 1./2), figures.AtMost(figures.Memory, 1./3)
	growth := figures.Below(figures.Growth, 32<<20)

	all := []scenario{
		{"pods at rest", reads, true, rest, goals{atRest}},
		{"8 JSON lists at a time", reads, true, lists(8, json), goals{growth}},
		{"list as JSON, first", reads, true, firstList(json), goals{cpu(1. / 8), took(1. / 3)}},
		{"list as JSON, repeated", reads, true, repeatedList(json), goals{cpu(1. / 8), took(1. / 3)}},
		{"list as Protobuf, first", reads, true, firstList(protobuf), goals{cpu(1. / 3)}},
		{"list as Protobuf, repeated", reads, true, repeatedList(protobuf), goals{cpu(1. / 3)}},
		{"list as Table, first", reads, true, firstList(table), goals{cpu(1. / 3)}},
		{"list as Table, repeated", reads, true, repeatedList(table), goals{cpu(1. / 3)}},
		{"watch start", reads, true, watchStart(plainWatch), goals{cpu(1. / 3), took(1. / 3)}},
		{"watch start, sendInitialEvents", reads, true, watchStart(streamedList), goals{cpu(1. / 3), took(1. / 3)}},
		{"get a pod, 16 clients", reads, true, get(16), goals{rate(3), cpu(1. / 3)}},
		{"changes to watchers", reads, false, watch(crowd{times: 1}), goals{cpu(1. / 2), tail}},
		{"changes to watchers by label", reads, false, watch(crowd{times: 1, labels: changeLabels}), goals{cpu(1. / 2), tail}},
		{"changes to ten times the watchers", reads, false, watch(crowd{times: 10}), goals{cpu(1. / 2)}},
		{"a second without clients", reads, false, idle(0), goals{cpu(1. / 2)}},
		{"a second with 500 idle watchers", reads, false, idle(500), goals{cpu(1. / 2)}},
	}
	all = append(all,
		scenario{"create config maps, 1 client", writes, false, create(1, mapBodies()), goals{took(1. / 2)}},
		scenario{"create config maps, 1 client, a webhook", writes, false, reviewed(false, create(1, mapBodies())), goals{took(1. / 2)}},
		scenario{"create config maps, 1 client, over gRPC", writes, false, reviewed(true, create(1, mapBodies())), goals{took(1. / 2)}},
		scenario{"create config maps, 16 clients, a webhook", writes, false, reviewed(false, create(16, mapBodies())), goals{rate(2), cpu(1. / 2)}},
		scenario{"create config maps, 16 clients, over gRPC", writes, false, reviewed(true, create(16, mapBodies())), goals{rate(2), cpu(1. / 2)}})
	for _, n := range []int{16, 64} {
		at := func(name string) string { return fmt.Sprintf("%s, %d clients", name, n) }
		all = append(all, []scenario{
			{at("create config maps"), writes, false, create(n, mapBodies()), goals{rate(2), cpu(1. / 2)}},
			{at("create pods"), writes, false, create(n, podBodies()), goals{rate(2), cpu(1. / 2)}},
			{at("PUT config maps"), writes, false, put(n, mapBodies()), goals{rate(2), cpu(1. / 2)}},
			{at("PUT pods"), writes, false, put(n, podBodies()), goals{rate(2), cpu(1. / 2)}},
			{at("merge patch config maps"), writes, false, mergePatch(n, mapBodies()), goals{rate(2), cpu(1. / 2)}},
			{at("merge patch pods"), writes, false, mergePatch(n, podBodies()), goals{rate(2), cpu(1. / 2)}},
			{at("apply one field of 70"), writes, false, apply(n, true), goals{rate(3), cpu(1. / 3)}},
			{at("apply no change"), writes, false, apply(n, false), goals{rate(3), cpu(1. / 3)}},
		}...)
	}
	return all
}
