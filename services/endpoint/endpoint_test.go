package endpoint_test

import (
	"testing"

	"github.com/portico-platform/portico/services/endpoint"
)

func TestLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.8.8": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "127.0.0.1.evil.example": false, "127.1": false,
		"localhost.evil.example": false, "nats": false, "::ffff:10.0.0.1": false, "fe80::1": false,
	} {
		if got := endpoint.Local(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
