package random

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/portico-platform/portico/test/compare/internal/corpus"
)

// placeholder stands for a value of the answer to an earlier step.
var placeholder = regexp.MustCompile(`<<(version|uid|continue) ([a-z0-9-]+)>>`)

// Fill returns a step for a namespace and for a server with what it has answered.
func Fill(step corpus.Step, namespace string, seen corpus.Seen) corpus.Step {
	text := func(in string) string {
		in = strings.ReplaceAll(in, Namespace, namespace)
		return placeholder.ReplaceAllStringFunc(in, func(found string) string {
			parts := placeholder.FindStringSubmatch(found)
			meta, _ := seen[parts[2]]["metadata"].(object)
			field := map[string]string{"version": "resourceVersion"}[parts[1]]
			if field == "" {
				field = parts[1]
			}
			if value, ok := meta[field]; ok {
				return fmt.Sprint(value)
			}
			return ""
		})
	}
	step.Path, step.Query = text(step.Path), text(step.Query)
	step.Body = text(string(step.Content(seen)))
	return step
}
