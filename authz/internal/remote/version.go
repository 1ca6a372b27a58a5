package remote

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/services/vocabulary"
)

// APIVersion returns the apiVersion for a value of --authorization-webhook-version. It
// returns an error for a version other than v1 and v1beta1.
func APIVersion(version string, v vocabulary.Vocabulary) (string, error) {
	if version != "v1" && version != "v1beta1" {
		return "", fmt.Errorf("%q is not supported: must be v1 or v1beta1", version)
	}
	return v.Group("authorization.") + "/" + version, nil
}

func isBeta(apiVersion string) bool { return strings.HasSuffix(apiVersion, "/v1beta1") }
