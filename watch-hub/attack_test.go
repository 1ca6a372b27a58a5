package watchhub

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

// TestAttackerOnTheBus: an attacker with all permissions on NATS, but without the hub's
// keys, can neither read changes nor forge any.
func TestAttackerOnTheBus(t *testing.T) {
	b := newRig(t)
	metrics := prometheus.NewRegistry()
	hub := &deaf{b.hub, math.MaxInt}
	source := changes.Source{Bus: b.nats.Connect(), Hub: hub, Silence: time.Hour,
		Opener: changes.NewOpener(b.hub, metrics, slog.New(slog.DiscardHandler))}
	start := b.etcd.Write(pod("start"), "value")
	stream, err := source.Follow(t.Context(), pods, start-1)
	if err != nil {
		t.Fatal(err)
	}
	reach(t, stream, start)

	attacker := b.nats.Connect()
	everything, err := attacker.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := attacker.Flush(); err != nil {
		t.Fatal(err)
	}
	// Reading: a secret with its labels and name is published.
	const plain = "s3cr3t-value"
	written := b.etcd.Write(resource.Key{GroupResource: resource.GroupResource{Resource: "secrets"}, Namespace: "hidden-ns", Name: "hidden-name"}, plain)
	revision := b.etcd.Write(pod("a"), plain)
	if heard := reach(t, stream, revision); len(heard) != 1 {
		t.Fatalf("heard %d changes, want 1", len(heard))
	}
	captured := capture(t, everything, 3)
	for _, m := range captured {
		for _, word := range []string{plain, "hidden-", "metadata", "spec"} {
			if bytes.Contains(m.Data, []byte(word)) {
				t.Errorf("a message on %s shows %q", m.Subject, word)
			}
		}
	}
	if written == 0 || !slices.ContainsFunc(captured, func(m *nats.Msg) bool { return m.Subject == "changes.core.secrets" }) {
		t.Error("no message about the secret was captured")
	}

	// Forging: an object that does not exist, and revisions that do not exist.
	own, err := seal.NewMaster(seal.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range forgeries(t, revision) {
		for _, subject := range []string{changes.Subject(pods), changes.Subject(pods) + ".ns", "changes.core.pods.*", changes.SubjectProgress} {
			sealed, err := seal.NewSealer(own).Seal(nil, subject, content)
			if err != nil {
				t.Fatal(err)
			}
			claimed := bytes.Clone(sealed)
			copy(claimed[1:], captured[0].Data[1:1+seal.IDBytes])
			for _, message := range [][]byte{content, sealed, claimed} {
				_ = attacker.Publish(subject, message) // NATS rejects the wildcard
			}
		}
	}
	for _, m := range captured { // replays all captured messages, also on other subjects
		for _, subject := range []string{m.Subject, changes.Subject(pods), changes.SubjectProgress} {
			_ = attacker.Publish(subject, m.Data)
		}
	}
	if err := attacker.Flush(); err != nil {
		t.Fatal(err)
	}
	hub.answers = 0 // the following changes must come from the bus
	revision = b.etcd.Write(pod("b"), "value")
	heard := reach(t, stream, revision)
	if len(heard) != 1 || heard[0].Object.Key.Name != "b" || heard[0].Object.Revision != revision {
		t.Errorf("heard %+v, want the change of b alone", heard)
	}
	if refused := refusals(t, metrics); refused["forged"] == 0 || refused["unknown_key"] == 0 || refused["malformed"] == 0 {
		t.Errorf("refused %v", refused)
	}
}

// capture receives messages until it has n with changes.
func capture(t *testing.T, sub *nats.Subscription, n int) (captured []*nats.Msg) {
	t.Helper()
	for found := 0; found < n; {
		m, err := sub.NextMsg(followTimeout)
		if err != nil {
			t.Fatal(err)
		}
		captured = append(captured, m)
		found++
	}
	return captured
}

// forgeries returns forged changes and progress messages.
func forgeries(t *testing.T, after int64) (contents [][]byte) {
	t.Helper()
	for _, revision := range []int64{after + 1, 1 << 60} {
		content, err := changes.AppendChange(nil, services.Change{Type: services.Added, Previous: after, Object: services.Object{
			Key: pod("forged"), Revision: revision, UID: "uid", JSON: fmt.Appendf(nil, `{"metadata":{"name":"forged","resourceVersion":"%d"}}`, revision)}})
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, content)
		progress, err := rpc.EncodeProgress(services.Progress{Through: revision, Floor: revision, Heads: map[resource.GroupResource]int64{pods: revision}})
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, progress)
	}
	return contents
}

// refusals returns the number of rejected messages by reason.
func refusals(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "portico_changes_refused_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			refused[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return refused
}
