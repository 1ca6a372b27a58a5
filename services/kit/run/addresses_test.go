package run

import "testing"

// TestAddresses: the log names the addresses of a service, not how they are resolved.
func TestAddresses(t *testing.T) {
	for target, want := range map[string]string{
		"dns:///store:7443": "store:7443", "etcd-endpoints://0xc64d6f14e00/127.0.0.1:2379": "127.0.0.1:2379",
		"list:///one:1,two:2": "one:1,two:2", "store:7443": "store:7443", "": "",
	} {
		if got := addresses(target); got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}
