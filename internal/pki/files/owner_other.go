//go:build !unix

package files

// setOwner does nothing on systems without numeric file owners.
func setOwner(_, _ string) error { return nil }

// syncDir does nothing where folders cannot be synchronized.
func syncDir(string) error { return nil }
