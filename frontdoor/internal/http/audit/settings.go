package audit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/reload"
)

// reloadEvery is how often the policy file is read.
const reloadEvery = time.Second

// Prefixes of the flags of the outputs.
const (
	filePrefix    = "audit-log-"
	webhookPrefix = "audit-webhook-"
)

// Settings are the flags of the audit log.
type Settings struct {
	policyFile string
	file       fileSettings
	webhook    webhookSettings
	proxies    []string
}

// Register adds the flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringVar(&s.policyFile, "audit-policy-file", "", "file with the Policy that says which requests are logged at which level, read again when it changes; empty: the end of every request at level Metadata")
	fs.StringSliceVar(&s.proxies, "trusted-proxies", nil, "`networks` of proxies, such as 10.1.0.0/16, whose X-Forwarded-For headers are logged in the audit log; if empty, those of all clients")
	s.file.register(fs)
	s.webhook.register(fs)
}

// Open returns the log, which is nil if no flag names one, and the current policy, which is
// nil without a file.
func (s *Settings) Open(n *run.Node) (log *Log, policy func() *Policy, err error) {
	if log, err = s.open(n); err != nil {
		return nil, nil, err
	}
	policy, err = s.follow(n)
	return log, policy, err
}

func (s *Settings) open(n *run.Node) (*Log, error) {
	err := cmp.Or(s.file.check(), s.file.delivery.check(filePrefix, apiVersion(n)), s.webhook.delivery.check(webhookPrefix, apiVersion(n)))
	if err != nil {
		return nil, err
	}
	if s.file.path == "" && s.webhook.file == "" {
		return nil, nil
	}
	proxies, err := s.networks()
	if err != nil {
		return nil, err
	}
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_audit_error_total", Help: "Events that were dropped, by output: log or webhook.",
	}, []string{"plugin"})
	n.Metrics.MustRegister(failed)
	log := &Log{apiVersion: apiVersion(n), sources: sources{proxies}}
	if s.file.path != "" {
		to, err := s.file.openOutput(n, &losses{Counter: failed.WithLabelValues("log"), log: n.Log, output: "log"})
		if err != nil {
			return nil, err
		}
		log.outputs = append(log.outputs, to)
	}
	if s.webhook.file != "" {
		to, err := s.webhook.open(n, log.apiVersion, &losses{Counter: failed.WithLabelValues("webhook"), log: n.Log, output: "webhook"})
		if err != nil {
			return nil, err
		}
		log.outputs = append(log.outputs, to)
	}
	return log, nil
}

// networks parses --trusted-proxies.
func (s *Settings) networks() (networks []netip.Prefix, err error) {
	for _, text := range s.proxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, run.Usagef("--trusted-proxies: %q is not a network such as 10.1.0.0/16", text)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

func apiVersion(n *run.Node) string { return n.Vocabulary.Group("audit.") + "/v1" }

// follow returns the current policy of the file, or nil if no flag names one. A new file
// that is invalid is logged and counted, and the policy before it stays in use.
func (s *Settings) follow(n *run.Node) (func() *Policy, error) {
	if s.policyFile == "" {
		return nil, nil
	}
	failures := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_audit_policy_reload_failures_total", Help: "Invalid new contents of --audit-policy-file.",
	})
	n.Metrics.MustRegister(failures)
	follower, err := openPolicy(s.policyFile, apiVersion(n), n.Log, failures)
	if err != nil {
		return nil, run.Usagef("--audit-policy-file: %v", err)
	}
	n.Go("following the audit policy", follower.run)
	return follower.current.Load, nil
}

// follower keeps the policy of a file. Requests do not wait for the file.
type follower struct {
	files   *reload.Files[*Policy]
	current atomic.Pointer[Policy]
}

func openPolicy(path, apiVersion string, log *slog.Logger, failures prometheus.Counter) (*follower, error) {
	f := &follower{}
	started := false
	var err error
	f.files, err = reload.Open(reload.Config[*Policy]{What: "audit policy", Paths: []string{path}, Log: log,
		Parse: func(content [][]byte) (*Policy, error) {
			p, err := ParsePolicy(content[0], apiVersion)
			if err != nil {
				if started {
					failures.Inc()
				}
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			return p, nil
		}})
	if err != nil {
		return nil, err
	}
	started = true
	f.current.Store(f.files.Get())
	return f, nil
}

// run reads the file again until ctx ends.
func (f *follower) run(ctx context.Context) error {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			f.current.Store(f.files.Get())
		}
	}
}
