package apps

import (
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// templateGeneration is the annotation that counts changes of the template of a DaemonSet.
const templateGeneration = "deprecated.daemonset.template.generation"

// showTemplateGeneration adds the annotation if it is missing, so that it has a field
// manager.
func showTemplateGeneration(m map[string]any, _ vocabulary.Vocabulary) {
	annotations := tree.Object(tree.Object(m, "metadata"), "annotations")
	if _, given := annotations[templateGeneration]; !given {
		annotations[templateGeneration] = "0"
	}
}

// createDaemonSet initializes the template generation to a positive value from the client,
// or 1.
func createDaemonSet(_ kinds.Write, obj, _ map[string]any) {
	n, err := strconv.ParseInt(rules.Text(rules.AsObject(tree.Object(obj, "metadata")["annotations"]), templateGeneration), 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	tree.Object(tree.Object(obj, "metadata"), "annotations")[templateGeneration] = strconv.FormatInt(n, 10)
}

// countTemplates increments the template generation when the template changes. Clients
// cannot set it in an update.
func countTemplates(_ kinds.Write, obj, old map[string]any) {
	n, _ := strconv.ParseInt(rules.Text(rules.AsObject(tree.Object(old, "metadata")["annotations"]), templateGeneration), 10, 64)
	if !tree.Equal(rules.AsObject(obj["spec"])["template"], rules.AsObject(old["spec"])["template"]) {
		n++
	}
	tree.Object(tree.Object(obj, "metadata"), "annotations")[templateGeneration] = strconv.FormatInt(n, 10)
}
