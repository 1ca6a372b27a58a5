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

// scenario is one thing to measure: what is done, and what should come out beside
// the peer.
type scenario struct {
	name  string
	part  string
	pods  bool // it wants the pods to be there
	run   func(ctx context.Context, m *measurement) error
	goals []figures.Goal
}

// scenarios is everything that is measured, in this order: first what wants servers
// that have done nothing yet but take the pods, last what adds objects.
func scenarios() []scenario {
	names := vocabulary.K8s()
	json, protobuf := "application/json", names.Protobuf
	table := "application/json;as=Table;v=v1;g=" + names.Group("meta")

	dearList := []figures.Goal{figures.AtMost(figures.ServerCPU, 1./8), figures.AtMost(figures.Median, 1./3)}
	otherList := []figures.Goal{figures.AtMost(figures.ServerCPU, 1./3)}
	start := []figures.Goal{figures.AtMost(figures.Median, 1./3), figures.AtMost(figures.ServerCPU, 1./3)}
	write := []figures.Goal{figures.AtLeast(figures.Throughput, 2), figures.AtMost(figures.ServerCPU, 1./2)}
	applied := []figures.Goal{figures.AtLeast(figures.Throughput, 3), figures.AtMost(figures.ServerCPU, 1./3)}
	all := []scenario{
		{"pods at rest", reads, true, rest, []figures.Goal{figures.AtMost(figures.Memory, 1./3)}},
		{"8 JSON lists at a time", reads, true, lists(8, json), []figures.Goal{figures.Below(figures.Growth, 32<<20)}},
		{"list as JSON, first", reads, true, firstList(json), dearList},
		{"list as JSON, repeated", reads, true, repeatedList(json), dearList},
		{"list as Protobuf, first", reads, true, firstList(protobuf), otherList},
		{"list as Protobuf, repeated", reads, true, repeatedList(protobuf), otherList},
		{"list as Table, first", reads, true, firstList(table), otherList},
		{"list as Table, repeated", reads, true, repeatedList(table), otherList},
		{"watch start", reads, true, watchStart(plainWatch), start},
		{"watch start, sendInitialEvents", reads, true, watchStart(streamedList), start},
		{"get a pod, 16 clients", reads, true, get(16), []figures.Goal{figures.AtLeast(figures.Throughput, 3), figures.AtMost(figures.ServerCPU, 1./3)}},
		{"changes to watchers", reads, false, watch, []figures.Goal{figures.AtMost(figures.ServerCPU, 1./2), figures.AtMost(figures.Tail, 1./2)}},
	}
	for _, n := range []int{16, 64} {
		at := func(name string) string { return fmt.Sprintf("%s, %d clients", name, n) }
		all = append(all, []scenario{
			{at("create config maps"), writes, false, create(n, mapBodies()), write},
			{at("create pods"), writes, false, create(n, podBodies()), write},
			{at("PUT config maps"), writes, false, put(n, mapBodies()), write},
			{at("PUT pods"), writes, false, put(n, podBodies()), write},
			{at("merge patch config maps"), writes, false, mergePatch(n, mapBodies()), write},
			{at("merge patch pods"), writes, false, mergePatch(n, podBodies()), write},
			{at("apply one field of 70"), writes, false, apply(n, true), applied},
			{at("apply no change"), writes, false, apply(n, false), applied},
		}...)
	}
	return all
}
