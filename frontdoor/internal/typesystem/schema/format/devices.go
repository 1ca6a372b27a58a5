package format

import "github.com/blang/semver/v4"

func semanticVersion(value string) []string {
	if _, err := semver.Parse(value); err != nil {
		return []string{"must be a string compatible with semver.org spec 2.0.0"}
	}
	return nil
}

// IsUUID reports whether a value is a UUID in its normal form.
func IsUUID(value string) bool {
	for i, char := range []byte(value) {
		switch digit := char >= '0' && char <= '9' || char >= 'a' && char <= 'f'; i {
		case 8, 13, 18, 23:
			if char != '-' {
				return false
			}
		default:
			if !digit {
				return false
			}
		}
	}
	return len(value) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}
