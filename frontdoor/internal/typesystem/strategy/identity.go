package strategy

// identityFields are the metadata fields that a write reads before the schema is checked:
// a value of a wrong type must not count as absent.
func identityFields() []string {
	return []string{"name", "generateName", "namespace", "uid", "resourceVersion"}
}

// WrongIdentity returns what is wrong with metadata that is not an object, or with an
// identity field that is not a string. It returns "" if nothing is wrong.
func WrongIdentity(object map[string]any) string {
	switch meta := object["metadata"].(type) {
	case nil:
	case map[string]any:
		for _, name := range identityFields() {
			if _, text := meta[name].(string); !text && meta[name] != nil {
				return "metadata." + name + ": expected a string"
			}
		}
	default:
		return "metadata: expected an object"
	}
	return ""
}
