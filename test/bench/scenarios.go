package main

import (
	"context"
	"fmt"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/bench/internal/figures"
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

// aboveFloor is the limit on the CPU time of a list in multiples of that of a plain TLS server
// that sends the same bytes, and beyondFsync the limit on the latency of a single write beyond
// an fsync.
const aboveFloor, beyondFsync = 1.3, float64(250 * time.Microsecond)

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
	if s.beside > 0 {
		return ofSize()
	}
	if s.processes != "" {
		for i := range all {
			all[i].goals = []figures.Goal{figures.AtMost(figures.ServerCPU, apart)}
		}
	}
	return all
}

// ofSize returns the measurements that depend on the number of pods, with the goals for
// 100,000 pods: absolute ones, and that of creates beside a tenth of the pods.
func ofSize() []scenario {
	within := func(d time.Duration) []figures.Goal { return []figures.Goal{figures.Below(figures.Median, float64(d))} }
	return []scenario{
		{"pods at rest", reads, true, rest, []figures.Goal{figures.Below(figures.Memory, 3<<30)}},
		{"restart to the first answer", reads, true, restart, within(10 * time.Second)},
		{"list as JSON, repeated", reads, true, repeatedList("application/json"), within(1200 * time.Millisecond)},
		{"list as Protobuf, first", reads, true, firstList(vocabulary.K8s().Protobuf), within(2400 * time.Millisecond)},
		{"watch start", reads, true, watchStart(plainWatch), within(1500 * time.Millisecond)},
		{"get a pod, 16 clients", reads, true, get(16), []figures.Goal{figures.AtLeast(figures.Throughput, 0.9)}},
		{"create pods, 16 clients", writes, true, create(16, podBodies()), []figures.Goal{figures.AtLeast(figures.Throughput, 0.9), figures.AtMost(figures.ServerCPU, 1/0.9)}},
		{"after everything", reads, true, afterEverything, []figures.Goal{figures.Below(figures.Memory, 3<<30)}},
	}
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
	late := figures.AtMost(figures.Tail, 1) // the median of the reference server is that of the documents before the change

	all := []scenario{
		{"pods at rest", reads, true, rest, goals{atRest}},
		{"8 JSON lists at a time", reads, true, lists(8, json), goals{growth}},
		{"list as JSON, first", reads, true, firstList(json), goals{cpu(1. / 8), took(1. / 3)}},
		{"list as JSON, repeated", reads, true, besideFloor(pods, repeatedList(json)), goals{cpu(1. / 8), took(1. / 3), figures.Below(figures.AboveFloor, aboveFloor)}},
		{"list as Protobuf, first", reads, true, firstList(protobuf), goals{cpu(1. / 3)}},
		{"list as Protobuf, repeated", reads, true, repeatedList(protobuf), goals{cpu(1. / 3)}},
		{"list as Table, first", reads, true, firstList(table), goals{cpu(1. / 3)}},
		{"list as Table, repeated", reads, true, repeatedList(table), goals{cpu(1. / 3)}},
		{"list in chunks of 500", reads, true, chunks(500), goals{cpu(1. / 3), took(1. / 3)}},
		{"watch start", reads, true, watchStart(plainWatch), goals{cpu(1. / 3), took(1. / 3)}},
		{"watch start, sendInitialEvents", reads, true, watchStart(streamedList), goals{cpu(1. / 3), took(1. / 3)}},
		{"get a pod, 16 clients", reads, true, get(16), goals{rate(3), cpu(1. / 3)}},
		{"changes to watchers", reads, false, watch(crowd{times: 1}), goals{cpu(1. / 2), tail}},
		{"changes to watchers by label", reads, false, watch(crowd{times: 1, labels: changeLabels}), goals{cpu(1. / 2), tail}},
		{"changes to ten times the watchers", reads, false, watch(crowd{times: 10}), goals{cpu(1. / 2)}},
		{"a change to the last of 4,000 watchers", reads, false, lastOf(4_000), goals{took(1)}},
		{"a change to the last of 10,000 watchers", reads, false, lastOf(10_000), goals{took(1)}},
		{"a deletion to its event", reads, false, deletions(0), goals{took(1), figures.AtMost(figures.Tail, 1)}},
		{"a deletion to its event, among changes", reads, false, deletions(1), goals{took(1), figures.AtMost(figures.Tail, 1)}},
		{"a second without clients", reads, false, idle(0), goals{cpu(1. / 2)}},
		{"a second with 500 idle watchers", reads, false, idle(500), goals{cpu(1. / 2)}},
		{"requests of 40 users", reads, true, requestsOfUsers(false), goals{tail}},
		{"requests of 40 users, a binding written each second", reads, true, requestsOfUsers(true), goals{tail}},
		{"a get beside 500 connections that list", reads, true, besideGreed(listPods, greedyConnections, false), goals{took(1. / 2)}},
		{"an administrator's get beside 500 connections that list", reads, true, besideGreed(listPods, greedyConnections, true), goals{figures.Below(figures.Median, float64(500*time.Millisecond))}},
		{"start with no data", reads, false, startEmpty, goals{cpu(1. / 2), took(1. / 2)}},
		{"OpenAPI v3 after a change of one of many definitions", reads, false, documents(documentsIndex), goals{late, figures.Below(figures.Median, float64(300*time.Millisecond))}},
		{"OpenAPI v2 after a change of one of many definitions", reads, false, documents(wholeDocument), goals{late, figures.Below(figures.Median, float64(3*time.Second))}},
	}
	all = append(all,
		scenario{"create config maps, 1 client", writes, false, besideFsync(create(1, mapBodies())), goals{took(1. / 2), figures.Below(figures.BeyondFsync, beyondFsync)}},
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
	all = append(all,
		scenario{"a get beside 500 connections that create", writes, true, besideGreed(createMaps, greedyConnections, false), goals{took(1. / 2)}},
		scenario{"an administrator's get beside 500 connections that create", writes, true, besideGreed(createMaps, greedyConnections, true), goals{figures.Below(figures.Median, float64(500*time.Millisecond))}},
		scenario{"a get beside 100 connections that conflict", writes, true, besideGreed(conflict, 100, false), goals{took(1. / 2)}})
	all = append(all, scenario{"after everything", writes, false, afterEverything, goals{atRest, figures.Below(figures.Memory, 500<<20)}},
		scenario{"restart to the first answer", writes, true, restart, goals{cpu(1. / 2), took(1. / 2)}})
	return all
}
