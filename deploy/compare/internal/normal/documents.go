package normal

import (
	"fmt"
	"strings"
)

// sharedParameters removes the hashes from the names of the parameters that the operations of
// an OpenAPI document share: they include the descriptions. Parameters of one name and place
// become one.
func sharedParameters(o map[string]any) {
	if o["swagger"] == nil {
		return
	}
	if parameters, ok := o["parameters"].(map[string]any); ok {
		renamed := map[string]any{}
		for name, parameter := range parameters {
			p, _ := parameter.(map[string]any)
			renamed[fmt.Sprint(withoutHash(name), " in ", p["in"])] = parameter
		}
		o["parameters"] = renamed
	}
	withoutHashes(o["paths"])
}

// hashLength is the length of a hash with the hyphen before it, which a hash may contain, too.
const hashLength = len("-QfD61s0i")

func withoutHash(name string) string {
	if at := len(name) - hashLength; at > 0 && name[at] == '-' {
		return name[:at]
	}
	return name
}

func withoutHashes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && strings.HasPrefix(ref, "#/parameters/") {
			v["$ref"] = withoutHash(ref)
		}
		for _, below := range v {
			withoutHashes(below)
		}
	case []any:
		for _, below := range v {
			withoutHashes(below)
		}
	}
}
