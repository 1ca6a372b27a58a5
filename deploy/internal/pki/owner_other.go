//go:build !unix

package pki

// setOwner does nothing on systems without numeric file owners.
func setOwner(_, _ string) error { return nil }
