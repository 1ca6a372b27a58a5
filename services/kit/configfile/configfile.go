// Package configfile reads configuration files of Kubernetes, such as that of
// --authorization-config, whose group has another name in each vocabulary. It knows no kinds.
package configfile

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

const prefix = "apiserver.config."

// JSON returns a file of a kind as JSON, with the apiVersion of Kubernetes. v1 and v1beta1 are
// read. Duplicate keys are errors, other fields are not looked at.
func JSON(content []byte, kind string, v vocabulary.Vocabulary) ([]byte, error) {
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, err
	}
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(asJSON, &head); err != nil {
		return nil, err
	}
	group, decoded := v.Group(prefix), vocabulary.K8s().Group(prefix)
	versions := map[string]string{group + "/v1": decoded + "/v1", group + "/v1beta1": decoded + "/v1beta1"}
	version, known := versions[head.APIVersion]
	switch {
	case !known:
		return nil, fmt.Errorf("apiVersion: %q is not supported: use %s/v1 or %s/v1beta1", head.APIVersion, group, group)
	case head.Kind != kind:
		return nil, fmt.Errorf("kind: %q is not supported: use %s", head.Kind, kind)
	}
	var fields map[string]any
	if err := json.Unmarshal(asJSON, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"] = version
	return json.Marshal(fields)
}
