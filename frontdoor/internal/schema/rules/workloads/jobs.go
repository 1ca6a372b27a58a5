package workloads

import (
	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// uidLabel is how the pods of a job are told from those of others.
const uidLabel = "controller-uid"

// maxIndexed bounds how many pods of an indexed job run at a time.
const maxIndexed = 100000

// jobSelectorMatches: a job selects the pods that its template makes.
func jobSelectorMatches(c *rules.Check, m, old map[string]any, at *field.Path) {
	spec := rules.Object(m, "spec")
	if spec == nil {
		return
	}
	where, uid := at.Field("spec"), rules.Text(rules.Object(m, "metadata"), "uid")
	if spec["selector"] == nil && uid != "" {
		c.Required(where.Field("selector"), "")
	}
	selectorMatches(c, m, old, at)
	if old == nil && uid != "" && spec["manualSelector"] != true {
		selector := rules.Object(spec, "selector")
		if labels := rules.Object(selector, "matchLabels"); selector != nil && labels[uidLabel] != uid {
			c.Invalid(where.Field("selector"), selector, "`selector` not auto-generated")
		}
	}
	if spec["completionMode"] != "Indexed" {
		return
	}
	if spec["completions"] == nil {
		c.Required(where.Field("completions"), "when completion mode is Indexed")
	}
	if parallel := rules.Number(spec, "parallelism"); parallel > maxIndexed {
		c.Invalid(where.Field("parallelism"), parallel, "must be less than or equal to 100000 when completion mode is Indexed")
	}
}

// noJobSelector: the jobs of a cron job select their pods by their own uids.
func noJobSelector(c *rules.Check, m, _ map[string]any, at *field.Path) {
	spec, at := rules.Object(m, "spec"), at.Field("spec")
	if spec["manualSelector"] == true {
		c.NotSupported(at.Field("manualSelector"), true, "nil", "false")
	}
	if spec["selector"] != nil {
		c.Invalid(at.Field("selector"), spec["selector"], "`selector` will be auto-generated")
	}
}

// maxCronJobName leaves room for what a job's name adds.
const maxCronJobName = 52

func cronJobName(c *rules.Check, m, old map[string]any, at *field.Path) {
	if name := rules.Text(rules.Object(m, "metadata"), "name"); old == nil && len(name) > maxCronJobName {
		c.Invalid(at.Field("metadata").Field("name"), name, "must be no more than 52 characters")
	}
}

// completions makes a job without both fields run once.
func completions(m map[string]any, _ vocabulary.Vocabulary) {
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
