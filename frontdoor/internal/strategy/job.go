package strategy

// selectByUID lets a job select its pods by its own uid, unless it brings a selector
// or says that it would.
func selectByUID(obj map[string]any) {
	spec, meta := object(obj, "spec"), Metadata(obj)
	if spec["manualSelector"] == true || spec["selector"] != nil {
		return
	}
	labels := map[string]any{"controller-uid": meta["uid"]}
	spec["selector"] = map[string]any{"matchLabels": labels}
	given := object(object(object(spec, "template"), "metadata"), "labels")
	for name, value := range map[string]any{"controller-uid": meta["uid"], "job-name": meta["name"]} {
		if text(given[name]) == "" {
			given[name] = value
		}
	}
}
