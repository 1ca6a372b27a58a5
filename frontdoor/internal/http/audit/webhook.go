package audit

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portico-platform/portico/services/kit/kubeconfig"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/webhooks"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/webhook"
)

const (
	// postTimeout bounds the delivery of one batch, and maxTries how often it is tried.
	postTimeout = 30 * time.Second
	maxTries    = 5
)

// webhookSettings are the flags of the webhook.
type webhookSettings struct {
	file  string
	pause time.Duration
	delivery
}

func (s *webhookSettings) register(fs *pflag.FlagSet) {
	fs.StringVar(&s.file, "audit-webhook-config-file", "", "kubeconfig of the service that gets the audit log; empty for none")
	s.delivery.register(fs, webhookPrefix, modeBatch)
	fs.DurationVar(&s.pause, "audit-webhook-initial-backoff", 10*time.Second, "delay before the first of four retries of a batch; it grows by half each time")
}

// remote sends batches to a webhook.
type remote struct {
	client     *webhook.Client
	apiVersion string
	pause      time.Duration
	log        *slog.Logger
}

// output returns the webhook as an output of the log.
func (s *webhookSettings) open(n *run.Node, apiVersion string, dropped prometheus.Counter) (output, error) {
	if s.pause < 0 {
		return output{}, run.Usagef("--audit-webhook-initial-backoff: %s is negative", s.pause)
	}
	file, err := kubeconfig.Read(s.file)
	if err != nil {
		return output{}, run.Usagef("--audit-webhook-config-file: %v", err)
	}
	to, err := file.Remote()
	if err != nil {
		return output{}, run.Usagef("--audit-webhook-config-file: %v", err)
	}
	r := &remote{apiVersion: apiVersion, pause: s.pause, log: n.Log,
		client: webhook.NewClients(webhook.Settings{Caller: webhooks.Caller("frontdoor")}).New(to)}
	return s.delivery.output(n, "sending the audit log", dropped, r.deliver), nil
}

// eventList is what the webhook gets.
type eventList struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Metadata   struct{}          `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// deliver sends a batch, again after every error, since a receiver knows events that it got
// twice by their auditID and stage.
func (r *remote) deliver(ctx context.Context, stopping <-chan struct{}, batch [][]byte) int {
	list := eventList{Kind: "EventList", APIVersion: r.apiVersion}
	for _, line := range batch {
		list.Items = append(list.Items, line)
	}
	backoff := wait.Backoff{Duration: r.pause, Factor: 1.5, Jitter: 0.2, Steps: maxTries}
	for try := 1; ; try++ {
		err := r.client.Post(ctx, list, nil, webhook.Limits{Timeout: postTimeout, Text: ledger.DecisionAnswer})
		if err == nil {
			return len(batch)
		}
		if try == maxTries || !pause(stopping, backoff.Step()) {
			r.log.Warn("audit events dropped", "events", len(batch), "tries", try, "error", err)
			return 0
		}
	}
}

// pause waits, and reports whether the time is over before stopping is closed.
func pause(stopping <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stopping:
		return false
	}
}
