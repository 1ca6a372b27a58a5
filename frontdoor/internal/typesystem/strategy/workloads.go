package strategy

import (
	"strconv"

	"github.com/portico-platform/portico/services/tree"
)

// Labels by which the pods of a job are told from those of others.
const (
	jobUIDLabel  = "controller-uid"
	jobNameLabel = "job-name"
)

// createJob lets a job select its pods by its own uid, unless it brings a selector
// and says so, and have the labels of its pods when it has none. A label or
// requirement that is there already is left to the rules.
func createJob(obj map[string]any) {
	spec := tree.Object(obj, "spec")
	if spec["manualSelector"] == true {
		return
	}
	meta := Metadata(obj)
	labels := tree.Object(tree.Object(tree.Object(spec, "template"), "metadata"), "labels")
	setMissing(labels, jobNameLabel, meta["name"])
	setMissing(labels, jobUIDLabel, meta["uid"])
	setMissing(tree.Object(tree.Object(spec, "selector"), "matchLabels"), jobUIDLabel, meta["uid"])
	if len(element(meta["labels"])) == 0 {
		meta["labels"] = tree.Copy(labels)
	}
}

func setMissing(m map[string]any, name string, value any) {
	if _, given := m[name]; !given {
		m[name] = value
	}
}

// templateGeneration is the annotation that counts the templates of a daemon set.
const templateGeneration = "deprecated.daemonset.template.generation"

// createDaemonSet begins to count, where the client wants or at one.
func createDaemonSet(obj map[string]any) {
	n, err := strconv.ParseInt(text(element(Metadata(obj)["annotations"])[templateGeneration]), 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	tree.Object(Metadata(obj), "annotations")[templateGeneration] = strconv.FormatInt(n, 10)
}

// countTemplates counts the templates that a daemon set has had; clients cannot.
func countTemplates(obj, old map[string]any) {
	n, _ := strconv.ParseInt(text(element(Metadata(old)["annotations"])[templateGeneration]), 10, 64)
	if !tree.Equal(element(obj["spec"])["template"], element(old["spec"])["template"]) {
		n++
	}
	tree.Object(Metadata(obj), "annotations")[templateGeneration] = strconv.FormatInt(n, 10)
}
