package field

import "strings"

// OneOfYAML joins the findings of a YAML decoder, which come first and have lines, to one
// error, as in Kubernetes.
func OneOfYAML(findings []string) []string {
	n := 0
	for n < len(findings) && strings.HasPrefix(findings[n], "line ") {
		n++
	}
	if n == 0 {
		return findings
	}
	return append([]string{"yaml: unmarshal errors:\n  " + strings.Join(findings[:n], "\n  ")}, findings[n:]...)
}
