package batch

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/tree"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/apps"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Labels that identify the pods of a Job.
const (
	uidLabel  = "controller-uid"
	nameLabel = "job-name"
)

// labelsQualified is the first release whose labels are qualified too.
var labelsQualified, _ = release.Of("1.27")

// identity returns the labels of a Job's pods, and the one of them that its selector has.
func identity(v vocabulary.Vocabulary, r release.Release, metadata map[string]any) (labels map[string]any, selected string) {
	labels = map[string]any{uidLabel: metadata["uid"], nameLabel: metadata["name"]}
	if r.Before(labelsQualified) {
		return labels, uidLabel
	}
	selected = v.Qualified("batch", uidLabel)
	labels[selected], labels[v.Qualified("batch", nameLabel)] = metadata["uid"], metadata["name"]
	return labels, selected
}

// maxIndexed limits the parallelism of an indexed Job.
const maxIndexed = 100000

// jobSelectorMatches checks that the selector of a Job matches its template, and that a
// generated selector uses the Job's own uid.
func jobSelectorMatches(c *rules.Check, m, old map[string]any, at *field.Path) {
	spec, where := rules.Object(m, "spec"), at.Field("spec")
	if spec["selector"] == nil {
		c.Required(where.Field("selector"), "")
	}
	apps.CheckSelector(c, spec, where)
	if spec["manualSelector"] != true && spec["selector"] != nil {
		ownSelector(c, m, old, where)
	}
}

// ownSelector checks the generated selector and labels of a Job. Jobs of releases without
// qualified labels may be updated without them.
func ownSelector(c *rules.Check, m, old map[string]any, where *field.Path) {
	spec, metadata := rules.Object(m, "spec"), rules.Object(m, "metadata")
	own, _ := identity(c.Vocabulary, c.Release, metadata)
	if had := rules.Object(old, "spec", "template", "metadata", "labels"); old != nil && !hasAll(had, own) {
		own, _ = identity(c.Vocabulary, labelsQualified.Previous(), metadata)
	}
	labels := rules.Object(spec, "template", "metadata", "labels")
	at := where.Field("template").Field("metadata").Field("labels")
	for _, name := range slices.Sorted(maps.Keys(own)) {
		must := fmt.Sprintf("must be '%v'", own[name])
		if label, given := labels[name]; !given {
			c.Required(at.Entry(name), must)
		} else if label != own[name] {
			c.Invalid(at.Entry(name), labels, must)
		}
	}
	selector := rules.Object(spec, "selector")
	if old != nil && rules.Same(selector, rules.Object(old, "spec")["selector"]) { // it may be that of a later release
		own, _ = identity(c.Vocabulary, labelsQualified, metadata)
	}
	if !rules.Selects(selector, own) {
		c.Invalid(where.Field("selector"), selector, "`selector` not auto-generated")
	}
}

// hostnamesOfPods checks that the names of an indexed Job's pods can be hostnames.
func hostnamesOfPods(c *rules.Check, m, old map[string]any, at *field.Path) {
	spec, name := rules.Object(m, "spec"), rules.Text(rules.Object(m, "metadata"), "name")
	completions := rules.Number(spec, "completions")
	if old != nil || spec["completionMode"] != "Indexed" || completions <= 0 {
		return
	}
	if last := fmt.Sprintf("%s-%d", name, completions-1); len(validation.IsDNS1123Label(last)) > 0 {
		c.Invalid(at.Field("metadata").Field("name"), name, "will not able to create pod with invalid DNS label: "+last)
	}
}

// hasAll reports whether a map has all names of another one.
func hasAll(m, names map[string]any) bool {
	for name := range names {
		if _, given := m[name]; !given {
			return false
		}
	}
	return true
}

// indexedJob checks that an indexed Job has completions and a limited parallelism.
func indexedJob(c *rules.Check, spec, _ map[string]any, at *field.Path) {
	if spec["completionMode"] != "Indexed" {
		return
	}
	if spec["completions"] == nil {
		c.Required(at.Field("completions"), "when completion mode is Indexed")
	}
	if parallel := rules.Number(spec, "parallelism"); parallel > maxIndexed {
		c.Invalid(at.Field("parallelism"), parallel, "must be less than or equal to 100000 when completion mode is Indexed")
	}
}

// noJobSelector checks that a job template has no selector: the Jobs of a CronJob get
// generated ones.
func noJobSelector(c *rules.Check, m, _ map[string]any, at *field.Path) {
	spec, at := rules.Object(m, "spec"), at.Field("spec")
	if spec["manualSelector"] == true {
		c.NotSupported(at.Field("manualSelector"), true, "nil", "false")
	}
	if spec["selector"] != nil {
		c.Invalid(at.Field("selector"), spec["selector"], "`selector` will be auto-generated")
	}
}

// maxCronJobName leaves space for the suffix of a Job's name.
const maxCronJobName = 52

func cronJobName(c *rules.Check, m, old map[string]any, at *field.Path) {
	if name := rules.Text(rules.Object(m, "metadata"), "name"); old == nil && len(name) > maxCronJobName {
		c.Invalid(at.Field("metadata").Field("name"), name, "must be no more than 52 characters")
	}
}

// jobCompletions defaults completions and parallelism to 1; completions only if both are
// absent.
func jobCompletions(m map[string]any, _ vocabulary.Vocabulary) {
	spec := rules.Object(m, "spec")
	if spec == nil {
		return
	}
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	if spec["parallelism"] == nil {
		spec["parallelism"] = int64(1)
	}
}

// labelsOfJob defaults the labels of a Job to those of its template. They are the same map, so
// that createJob adds to both, as Kubernetes does.
func labelsOfJob(m map[string]any, _ vocabulary.Vocabulary) {
	labels := rules.Object(m, "spec", "template", "metadata", "labels")
	if len(labels) > 0 && len(rules.Object(m, "metadata", "labels")) == 0 {
		tree.Object(m, "metadata")["labels"] = labels
	}
}

// jobTemplate checks that the pods of a Job can complete: restartPolicy OnFailure or Never.
// Always, the default of pods, counts as absent.
func jobTemplate(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if spec := rules.Object(m, "spec", "template", "spec"); rules.Text(spec, "restartPolicy") == "Always" {
		c.Required(at.Field("spec").Field("template").Field("spec").Field("restartPolicy"), `valid values: "OnFailure", "Never"`)
	} else {
		apps.CheckRestartPolicy(c, m, at, "OnFailure", "Never")
	}
	apps.CheckNoEphemeralContainers(c, m, at)
}

// createJob generates the selector and the template labels of a Job from its uid and name,
// unless manualSelector is set, and defaults its labels to those of the template. It does
// not change existing labels and requirements; validation checks them.
func createJob(w kinds.Write, obj, _ map[string]any) {
	spec := tree.Object(obj, "spec")
	if spec["manualSelector"] == true {
		return
	}
	meta := tree.Object(obj, "metadata")
	labels := tree.Object(tree.Object(tree.Object(spec, "template"), "metadata"), "labels")
	own, selected := identity(w.Vocabulary, w.Release, meta)
	for name, value := range own {
		setMissing(labels, name, value)
	}
	setMissing(tree.Object(tree.Object(spec, "selector"), "matchLabels"), selected, meta["uid"])
	if len(rules.AsObject(meta["labels"])) == 0 {
		meta["labels"] = labels
	}
	meta["labels"] = tree.Copy(meta["labels"])
}

func setMissing(m map[string]any, name string, value any) {
	if _, given := m[name]; !given {
		m[name] = value
	}
}
