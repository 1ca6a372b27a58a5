package apps

import (
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// templateGeneration is the annotation that counts the templates of a daemon set.
const templateGeneration = "deprecated.daemonset.template.generation"

// showTemplateGeneration: a daemon set always shows the count, so that it has an owner.
func showTemplateGeneration(m map[string]any, _ vocabulary.Vocabulary) {
	annotations := tree.Object(tree.Object(m, "metadata"), "annotations")
	if _, given := annotations[templateGeneration]; !given {
		annotations[templateGeneration] = "0"
	}
}

// createDaemonSet begins to count, where the client wants or at one.
func createDaemonSet(_ kinds.Write, obj, _ map[string]any) {
	n, err := strconv.ParseInt(rules.Text(rules.AsObject(tree.Object(obj, "metadata")["annotations"]), templateGeneration), 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	tree.Object(tree.Object(obj, "metadata"), "annotations")[templateGeneration] = strconv.FormatInt(n, 10)
}

// countTemplates counts the templates that a daemon set has had; clients cannot.
func countTemplates(_ kinds.Write, obj, old map[string]any) {
	n, _ := strconv.ParseInt(rules.Text(rules.AsObject(tree.Object(old, "metadata")["annotations"]), templateGeneration), 10, 64)
	if !tree.Equal(rules.AsObject(obj["spec"])["template"], rules.AsObject(old["spec"])["template"]) {
		n++
	}
	tree.Object(tree.Object(obj, "metadata"), "annotations")[templateGeneration] = strconv.FormatInt(n, 10)
}
