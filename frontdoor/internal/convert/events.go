package convert

// renamed are the fields of an event in the core group and in the events group.
var renamed = [...][2]string{
	{"involvedObject", "regarding"},
	{"message", "note"},
	{"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"},
	{"count", "deprecatedCount"},
	{"reportingComponent", "reportingController"},
}

// events renames the fields of an event between its two groups. Series and
// eventTime have the same names in both.
func events(object map[string]any, fromCore, toCore bool) {
	if fromCore == toCore {
		return
	}
	for _, names := range renamed {
		from, to := names[0], names[1]
		if toCore {
			from, to = to, from
		}
		if value, ok := object[from]; ok {
			delete(object, from)
			object[to] = value
		}
	}
}
