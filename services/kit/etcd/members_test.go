package etcd

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// TestMembersAway: a member is not used while it is silent and another one is not, and never the last one.
func TestMembersAway(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://a:1", "http://b:1", "http://c:1"}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	m := &members{client: client, log: slog.New(slog.DiscardHandler)}
	for _, endpoint := range client.Endpoints() {
		m.all = append(m.all, &member{endpoint: endpoint})
	}
	a, b, c := m.all[0], m.all[1], m.all[2]
	const silent = true
	for _, step := range []struct {
		what   string
		one    *member
		silent bool
		want   []*member
	}{
		{"nobody has responded", a, silent, []*member{a, b, c}},
		{"another one responds", b, !silent, []*member{a, b, c}},
		{"silent beside another one", a, silent, []*member{b, c}},
		{"a second one", c, silent, []*member{b}},
		{"the last one", b, silent, []*member{b}},
		{"one returns", c, !silent, []*member{b, c}},
		{"and replaces the last one", b, silent, []*member{c}},
		{"all return", a, !silent, []*member{a, c}},
		{"all return", b, !silent, []*member{a, b, c}},
	} {
		m.note(step.one, time.Now().Add(-silentAfter), step.silent)
		var want []string
		for _, one := range step.want {
			want = append(want, one.endpoint)
		}
		if got := client.Endpoints(); !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", step.what, got, want)
		}
	}
}

// TestSilentBefore: a member that responded before the probe began may be as silent as the other one.
func TestSilentBefore(t *testing.T) {
	m := &members{all: []*member{{endpoint: "a"}, {endpoint: "b", answered: time.Now()}}}
	if m.note(m.all[0], time.Now(), true); m.all[0].away {
		t.Error("a member is away although the other one has not responded since")
	}
}

func TestAddresses(t *testing.T) {
	for endpoint, want := range map[string]string{"https://host:2379": "host:2379", "http://[::1]:2379/": "[::1]:2379", "host:2379": "host:2379", "127.0.0.1:2379": "127.0.0.1:2379"} {
		if got := (&member{endpoint: endpoint}).address(); got != want {
			t.Errorf("%s: %s, want %s", endpoint, got, want)
		}
	}
}
