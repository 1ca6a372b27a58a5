package worker

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/kit/run"
)

// controllers are the names of the controllers of all workers, in the order of the manual. One
// --controllers may be given to every worker process, so that each knows all names.
var controllers = []string{"namespace", "customresourcecleanup", "garbagecollector", "serviceaccount", "root-ca-cert-publisher",
	"serviceaccount-token", "legacy-service-account-token-cleaner", "resourcequota", "pvc-protection", "pv-protection", "volumeattributesclass-protection-controller",
	"clusterrole-aggregation", "csrsigning", "csrapproving", "csrcleaner", "tokencleaner", "bootstrapsigner"}

// Enabled reports whether --controllers turns a controller on. The last entry with the
// name has precedence, also over *. It panics for a name that is not one of controllers.
func Enabled(n *run.Node, name string, byDefault bool) bool {
	if !slices.Contains(controllers, name) {
		panic("controller " + name + " is not in the list of controllers")
	}
	list, _ := n.Flags.GetStringSlice("controllers")
	for _, word := range slices.Backward(list) {
		switch word {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	return byDefault && slices.Contains(list, "*")
}

// checkControllers returns a usage error if --controllers contains an unknown name.
func checkControllers(n *run.Node) error {
	list, _ := n.Flags.GetStringSlice("controllers")
	for _, word := range list {
		if name := strings.TrimPrefix(word, "-"); name != "*" && !slices.Contains(controllers, name) {
			return run.Usagef("--controllers: %q is not one of *, %s", name, strings.Join(controllers, ", "))
		}
	}
	return nil
}
