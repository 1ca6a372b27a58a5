//go:build !linux

package accept

import (
	"net"
	"time"
)

// setUserTimeout does nothing where the operating system does not have it.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
