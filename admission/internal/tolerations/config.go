package tolerations

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/admission/internal/config"
)

// Config stands in for the annotations that a namespace does not have.
type Config struct {
	Default   []corev1.Toleration `json:"default"`
	Whitelist []corev1.Toleration `json:"whitelist"`
}

// Parse reads the configuration of the plugin.
func Parse(d config.Document) (Config, error) {
	var read struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Config
	}
	if err := d.DecodeVersion(&read, config.Version{Group: "podtolerationrestriction.admission.", Version: "v1alpha1", Kind: "Configuration"}); err != nil {
		return Config{}, err
	}
	for _, list := range []struct {
		field       string
		tolerations []corev1.Toleration
	}{{"default", read.Default}, {"whitelist", read.Whitelist}} {
		for i, t := range list.tolerations {
			if field, why := invalid(t); why != "" {
				return Config{}, d.Invalid(fmt.Sprintf("%s[%d].%s", list.field, i, field), "%s", why)
			}
		}
	}
	return read.Config, nil
}

// invalid returns the first invalid field of a toleration and the reason; both are empty
// when there is none.
func invalid(t corev1.Toleration) (field, why string) {
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return "key", strings.Join(validation.IsQualifiedName(t.Key), "; ")
	case t.Key == "" && !exists:
		return "operator", "operator must be Exists when `key` is empty, which means \"match all values and all keys\""
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return "effect", "effect must be 'NoExecute' when `tolerationSeconds` is set"
	case exists && t.Value != "":
		return "operator", "value must be empty when `operator` is 'Exists'"
	case !exists && t.Operator != corev1.TolerationOpEqual && t.Operator != "":
		return "operator", fmt.Sprintf("unsupported value %q: supported values: [\"Equal\" \"Exists\"]", t.Operator)
	case len(validation.IsValidLabelValue(t.Value)) > 0:
		return "value", strings.Join(validation.IsValidLabelValue(t.Value), "; ")
	case !slices.Contains(effects, t.Effect):
		return "effect", fmt.Sprintf("unsupported value %q: supported values: %q", t.Effect, effects[1:])
	}
	return "", ""
}
