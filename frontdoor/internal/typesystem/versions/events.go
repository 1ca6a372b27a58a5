package versions

import "github.com/portico-platform/portico/services/vocabulary"

// eventNames are the fields of an event in the core group and in the events group.
// Its series has the same name in both.
var eventNames = [...]struct{ core, events string }{
	{"involvedObject", "regarding"},
	{"message", "note"},
	{"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"},
	{"count", "deprecatedCount"},
	{"reportingComponent", "reportingController"},
}

func eventToBest(_ vocabulary.Vocabulary, event map[string]any) {
	for _, name := range eventNames {
		rename(event, name.core, name.events)
	}
}

func eventFromBest(_ vocabulary.Vocabulary, event map[string]any) {
	for _, name := range eventNames {
		rename(event, name.events, name.core)
	}
}
