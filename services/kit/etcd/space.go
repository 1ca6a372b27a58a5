package etcd

// NoSpace is the error of a write that was refused because there is no room for
// it. Nothing was written. Reads and deletions are not refused.
type NoSpace struct {
	Reason string
}

// Error returns the reason.
func (e *NoSpace) Error() string { return e.Reason }
