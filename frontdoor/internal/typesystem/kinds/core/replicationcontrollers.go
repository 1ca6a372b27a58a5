package core

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// labelsOfTemplate defaults the selector and the labels of a ReplicationController to the
// labels of its template.
func labelsOfTemplate(m map[string]any, _ vocabulary.Vocabulary) {
	spec := rules.Object(m, "spec")
	labels := rules.Object(spec, "template", "metadata", "labels")
	if len(labels) == 0 {
		return
	}
	if len(rules.Object(spec, "selector")) == 0 {
		spec["selector"] = tree.Copy(labels)
	}
	if len(rules.Object(m, "metadata", "labels")) == 0 {
		rules.Complete(m, map[string]any{"metadata": map[string]any{"labels": labels}})
	}
}
