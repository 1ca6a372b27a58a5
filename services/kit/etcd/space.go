package etcd

// NoSpace is the error of a write that was rejected for lack of space. Nothing was written.
// Reads and deletions are not rejected.
type NoSpace struct {
	Reason string
}

// Error returns the reason.
func (e *NoSpace) Error() string { return e.Reason }
