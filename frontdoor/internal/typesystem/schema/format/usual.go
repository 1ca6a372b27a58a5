package format

import "k8s.io/apimachinery/pkg/util/validation"

// usually returns a format that accepts words at once, for formats that accept them all. Most
// names and labels are words, and the library matches regular expressions.
func usually(f Format) Format {
	return func(value string) []string {
		if word(value) {
			return nil
		}
		return f(value)
	}
}

// word reports whether a value is at most 63 lower-case letters, digits and hyphens, which
// begins and ends with a letter or digit.
func word(value string) bool {
	last := len(value) - 1
	if last < 0 || last >= validation.DNS1123LabelMaxLength || value[0] == '-' || value[last] == '-' {
		return false
	}
	for i := range len(value) {
		if c := value[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// envName is the name of an environment variable.
func envName(value string) []string {
	for i := range len(value) {
		switch c := value[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c == '_', '0' <= c && c <= '9' && i > 0:
		default:
			return validation.IsEnvVarName(value)
		}
	}
	if value == "" {
		return validation.IsEnvVarName(value)
	}
	return nil
}
