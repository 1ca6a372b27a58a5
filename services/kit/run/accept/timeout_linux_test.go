package accept

import (
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUserTimeout: connections of peers have the timeout that gRPC cannot set, because they are
// wrapped.
func TestUserTimeout(t *testing.T) {
	l, served := peerPort(t, io.Discard)
	dial(t, l)
	raw, err := next(t, served).(*peerConn).conn.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	var failed error
	err = raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) })
	if err := errors.Join(err, failed); err != nil || got != 1234 {
		t.Errorf("got %d ms, %v", got, err)
	}
}
