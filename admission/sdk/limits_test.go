package sdk_test

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"testing"
	"time"
)

// TestLimitsOfConnections: a client that begins no handshake is disconnected within seconds, and one
// with a certificate learns how many calls it may make at a time, and how large their headers may be.
func TestLimitsOfConnections(t *testing.T) {
	t.Parallel()
	p := newSite(t, colors(), nil)
	idle, err := net.Dial("tcp", p.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	config := trust(t, p.authority, p.authority, "admission")
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", p.Address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The preface of HTTP/2, and empty settings.
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 9)
	if _, err := io.ReadFull(conn, header); err != nil || header[3] != 4 {
		t.Fatalf("a frame of type %d instead of settings, %v", header[3], err)
	}
	settings := make([]byte, int(header[1])<<8|int(header[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	got := map[uint16]uint32{}
	for ; len(settings) >= 6; settings = settings[6:] {
		if id := binary.BigEndian.Uint16(settings); id == 3 || id == 6 {
			got[id] = binary.BigEndian.Uint32(settings[2:])
		}
	}
	if want := map[uint16]uint32{3: 2000, 6: 64 << 10}; !maps.Equal(got, want) {
		t.Errorf("got settings %v, want %v", got, want)
	}
	if err := idle.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("an answer without a handshake")
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection without a handshake is kept for a minute")
	}
}
