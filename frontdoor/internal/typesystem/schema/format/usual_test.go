package format

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzUsual: what is accepted at once is what the library accepts.
func FuzzUsual(f *testing.F) {
	for _, sample := range []string{"", "a", "-a", "a-", "a-b", "A", "A_1", "1A", "a.b", "_", ".", "..", "é", "a/b", "0123456789012345678901234567890123456789012345678901234567890123"} {
		f.Add(sample)
	}
	library := []Format{validation.IsDNS1123Label, validation.IsDNS1123Subdomain, validation.IsQualifiedName, validation.IsValidLabelValue, AnnotationKey, validation.IsConfigMapKey}
	f.Fuzz(func(t *testing.T, value string) {
		for i, format := range library {
			if problems := format(value); word(value) && len(problems) > 0 {
				t.Errorf("%q, format %d: %v", value, i, problems)
			}
		}
		if got, want := envName(value), validation.IsEnvVarName(value); len(got) != len(want) {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	})
}
