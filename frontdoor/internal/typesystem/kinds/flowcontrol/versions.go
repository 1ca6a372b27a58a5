package flowcontrol

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// The hub version of priority levels is v1. The older version has another name for the
// shares of a level.

func levelFromV1beta1(_ vocabulary.Vocabulary, level map[string]any) {
	renameShares(level, "assuredConcurrencyShares", "nominalConcurrencyShares")
}

func levelToV1beta1(_ vocabulary.Vocabulary, level map[string]any) {
	renameShares(level, "nominalConcurrencyShares", "assuredConcurrencyShares")
}

func renameShares(level map[string]any, from, to string) {
	edit.Member(level, "spec", func(spec map[string]any) {
		edit.Member(spec, "limited", func(limited map[string]any) { edit.Rename(limited, from, to) })
	})
}

// queuingOfResponse checks that a response that queues requests has queues, and no other. The
// messages are those of Kubernetes.
func queuingOfResponse(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch queues := m["queuing"] != nil; {
	case m["type"] == "Queue" && !queues:
		c.Required(at.Field("queuing"), "must not be empty if limited.limitResponse.type is Limited")
	case m["type"] == "Reject" && queues:
		c.Forbidden(at.Field("queuing"), "must be nil if limited.limitResponse.type is not Limited")
	}
}

// limitsOfLevel checks that a limited level has limits, and no other.
func limitsOfLevel(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	if spec["type"] == "Exempt" && spec["limited"] != nil {
		c.Forbidden(at.Field("limited"), "must be nil if the type is not Limited")
	}
	if spec["type"] == "Limited" && spec["exempt"] != nil {
		c.Forbidden(at.Field("exempt"), "must be nil if the type is Limited")
	}
	if spec["type"] == "Limited" && spec["limited"] == nil {
		c.Required(at.Field("limited"), "must not be empty when type is Limited")
	}
}
