package apps

import (
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// templateGeneration is the annotation that counts the templates of a daemon set.
const templateGeneration = "deprecated.daemonset.template.generation"

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
