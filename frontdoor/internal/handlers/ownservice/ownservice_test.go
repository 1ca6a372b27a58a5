package ownservice

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestPeers: a front door that stops renewing its record is removed by the others after
// 15 seconds on their own clock. One that shuts down removes its record at once.
func TestPeers(t *testing.T) {
	const deadAfter = 15 * time.Second
	store := fake.New(t).Store()
	one, two := records.Address{IP: "10.1.0.1", Port: 6443}, records.Address{IP: "10.1.0.2", Port: 6443}
	a, b := &records.Book{Store: store}, &records.Book{Store: store}
	start := time.Unix(1000, 0)
	later := start.Add(-time.Hour) // the second one's clock is behind
	renew := func(p *records.Book, self records.Address, now time.Time) {
		t.Helper()
		if err := p.Renew(t.Context(), records.Record{Address: self}, now); err != nil {
			t.Fatal(err)
		}
	}
	sees := func(p *records.Book, now time.Time, want ...records.Address) {
		t.Helper()
		got, count, err := p.Alive(t.Context(), now)
		if err != nil || count != len(want) || !slices.Equal(got, want) {
			t.Fatalf("sees %v, %v; want %v", got, err, want)
		}
	}
	renew(a, one, start)
	renew(b, two, later)
	sees(a, start, one, two)
	sees(b, later, one, two)
	for i := range 3 { // the first one has stopped
		renew(b, two, later.Add(time.Duration(i)*renewEvery))
	}
	sees(b, later.Add(deadAfter), one, two)
	sees(b, later.Add(deadAfter+1), two)
	renew(a, one, start.Add(time.Hour)) // and runs again
	sees(b, later.Add(2*deadAfter), one, two)
	if err := a.Remove(t.Context(), records.Record{Address: one}); err != nil {
		t.Fatal(err)
	}
	sees(b, later.Add(2*deadAfter), two)
	sees(a, start.Add(2*time.Hour), two) // the first read of a record starts its period
}

// TestObjects: front doors with other ports are in a subset of their own.
func TestObjects(t *testing.T) {
	k := New(Config{Vocabulary: vocabulary.K8s(), Self: records.Address{IP: "10.1.0.1", Port: 6443}, ClusterIP: "10.0.0.1"})
	alive := []records.Address{{IP: "10.1.0.3", Port: 6443}, {IP: "10.1.0.1", Port: 6443}, {IP: "10.1.0.2", Port: 8443}, {IP: "10.1.0.1", Port: 6443}}
	for what, c := range map[string]struct {
		got  any
		want string
	}{
		"service": {k.service("10.0.0.1")["spec"], `{"clusterIP":"10.0.0.1","ports":[{"name":"https","port":443,"protocol":"TCP","targetPort":6443}],"sessionAffinity":"None","type":"ClusterIP"}`},
		"endpoints": {k.endpoints(alive)["subsets"], `[{"addresses":[{"ip":"10.1.0.1"},{"ip":"10.1.0.3"}],"ports":[{"name":"https","port":6443,"protocol":"TCP"}]},` +
			`{"addresses":[{"ip":"10.1.0.2"}],"ports":[{"name":"https","port":8443,"protocol":"TCP"}]}]`},
		"slice": {k.slice(alive)["endpoints"], `[{"addresses":["10.1.0.1"],"conditions":{"ready":true}},{"addresses":["10.1.0.3"],"conditions":{"ready":true}}]`},
	} {
		if got, err := json.Marshal(c.got); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	for address, want := range map[records.Address]bool{{IP: "10.1.0.1", Port: 1}: true, {IP: "2001:db8::1", Port: 1}: true, {IP: "127.0.0.1", Port: 1}: false, {IP: "", Port: 1}: false, {IP: "fe80::1", Port: 1}: false, {IP: "10.1.0.1", Port: 0}: false} {
		if address.Valid() != want {
			t.Errorf("%v: valid is %v", address, !want)
		}
	}
}
