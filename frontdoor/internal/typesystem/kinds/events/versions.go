package events

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// renamedFields are the fields of an event in the core group and in the events group.
// Its series has the same name in both.
var renamedFields = [...]struct{ core, events string }{
	{"involvedObject", "regarding"},
	{"message", "note"},
	{"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"},
	{"count", "deprecatedCount"},
	{"reportingComponent", "reportingController"},
}

func eventFromCore(_ vocabulary.Vocabulary, event map[string]any) {
	for _, name := range renamedFields {
		edit.Rename(event, name.core, name.events)
	}
}

func eventToCore(_ vocabulary.Vocabulary, event map[string]any) {
	for _, name := range renamedFields {
		edit.Rename(event, name.events, name.core)
	}
}
