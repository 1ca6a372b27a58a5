package delegate

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/replicas"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

// tick is how often the file is read and the status of services is looked at.
const tick = time.Second

// Config configures a Registry.
type Config struct {
	// File is the path of the file of services, empty for none.
	File string
	// Store receives the status of services.
	Store       services.Store
	Clients     *webhook.Clients // for services that speak AdmissionReview, and for addresses
	Services    locate.Locator   // finds the replicas of Services
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	Expressions *cel.Engine
	Vocabulary  vocabulary.Vocabulary
	// Ledger counts the responses of services; nil counts nothing.
	Ledger *ledger.Ledger
	Log    *slog.Logger
}

// Registry keeps the active services: those of objects and those of the file.
type Registry struct {
	config  Config
	metrics *metrics
	file    *file // nil for none
	changed chan struct{}
	now     atomic.Pointer[[]*Service]

	mu      sync.Mutex // held while the services are changed
	objects review.Collection[*Declared]
	running map[string]*Service
	status  *statusWriter
}

// Service is an active admission service.
type Service struct {
	Name  string
	Spec  admissionservice.Spec
	rules match.Rules
	pool  *replicas.Pool
	tally *tally
}

func (s *Service) key() string { return "admission service " + s.Name }

// Declared is a service as an object or the file declares it.
type Declared struct {
	Name       string
	UID        string // empty for one in the file
	Generation int64
	Spec       admissionservice.Spec
	Problem    string // why it cannot be asked
}

// NewRegistry returns a registry, which has only the services of the file until the objects
// are followed. Its error is a mistake in the file.
func NewRegistry(c Config) (*Registry, error) {
	g := &Registry{config: c, changed: make(chan struct{}, 1), running: map[string]*Service{}}
	g.now.Store(&[]*Service{})
	g.metrics = newMetrics(g)
	g.status = newStatusWriter(c)
	if c.File == "" {
		return g, nil
	}
	var err error
	g.file, err = openFile(c, g.metrics.refused)
	return g, err
}

// Metrics returns the metrics of all services.
func (g *Registry) Metrics() *metrics { return g.metrics }

// Services returns the services in the order of their calls; none for a nil
// registry. The caller must not change the slice.
func (g *Registry) Services() []*Service {
	if g == nil {
		return nil
	}
	return *g.now.Load()
}

// hasFile reports whether services may be in a file.
func (g *Registry) hasFile() bool { return g != nil && g.file != nil }

// known returns the declarations, from which the active services may differ for a moment; nothing for a nil
// registry.
func (g *Registry) known() []*Declared {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.declared()
}

// Unreadable returns the error of an object that cannot be read and of which nothing is known; nil if there is none, and
// for a nil registry.
func (g *Registry) Unreadable() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.objects == nil {
		return nil
	}
	return g.objects.Unreadable("")
}

// Changed makes Run read the objects.
func (g *Registry) Changed() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// Follow makes the services of the objects part of the registry.
func (g *Registry) Follow(objects review.Collection[*Declared]) {
	g.mu.Lock()
	g.objects = objects
	g.mu.Unlock()
	g.reconcile()
}

// Run follows the objects and the file until ctx ends.
func (g *Registry) Run(ctx context.Context) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			g.close()
			return nil
		case <-g.changed:
			g.reconcile()
		case <-ticks.C:
			if g.file != nil {
				g.reconcile()
			}
		}
	}
}

func (g *Registry) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now.Store(&[]*Service{})
	for _, s := range g.running {
		s.pool.Close()
	}
}

// declared returns what the file and the objects declare. A service of the file takes
// precedence over an object of the same name.
func (g *Registry) declared() (all []*Declared) {
	if g.file != nil {
		all = slices.Clone(g.file.services())
	}
	inFile := len(all)
	if g.objects == nil {
		return all
	}
	for _, d := range g.objects.List("") {
		if slices.ContainsFunc(all[:inFile], func(f *Declared) bool { return f.Name == d.Name }) {
			shadowed := *d
			shadowed.Problem = "--admission-services-file has a service of this name"
			d = &shadowed
		}
		all = append(all, d)
	}
	return all
}

// reconcile makes the running services those that are declared. Connections of services
// whose address and trust are unchanged stay open.
func (g *Registry) reconcile() {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := map[string]*Service{}
	for _, d := range g.declared() {
		if d.Problem == "" {
			next[d.Name] = g.start(d)
		}
	}
	list := make([]*Service, 0, len(next))
	for _, s := range next {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Service) int {
		return cmp.Or(cmp.Compare(a.Spec.Order, b.Spec.Order), strings.Compare(a.Name, b.Name))
	})
	g.now.Store(&list)
	for name, s := range g.running {
		if next[name] == nil {
			g.metrics.forget(name)
		}
		if next[name] == nil || next[name].pool != s.pool {
			s.pool.Close()
		}
	}
	g.running = next
}

// start returns the service of a declaration, with the connections of the running one if
// they are the same.
func (g *Registry) start(d *Declared) *Service {
	running := g.running[d.Name]
	if running != nil && reflect.DeepEqual(running.Spec, d.Spec) {
		return running
	}
	s := &Service{Name: d.Name, Spec: d.Spec, rules: rulesOf(d)}
	if running != nil && reflect.DeepEqual(running.Spec.Endpoint, d.Spec.Endpoint) && reflect.DeepEqual(running.Spec.Trust, d.Spec.Trust) &&
		reflect.DeepEqual(running.Spec.Batch, d.Spec.Batch) && running.Spec.Protocol == d.Spec.Protocol {
		s.pool, s.tally = running.pool, running.tally
		return s
	}
	s.tally = &tally{}
	s.pool = replicas.NewPool(replicas.Config{Name: d.Name, Protocol: d.Spec.Protocol, Endpoint: d.Spec.Endpoint, Trust: d.Spec.Trust,
		Batch: d.Spec.Batch, Batched: func(requests int) { g.metrics.batches.WithLabelValues(d.Name).Observe(float64(requests)) },
		Clients: g.config.Clients, Services: g.config.Services, Certificate: g.config.Certificate, Vocabulary: g.config.Vocabulary,
		Ledger: g.config.Ledger, Log: g.config.Log})
	return s
}

// rulesOf returns the rules of a valid declaration.
func rulesOf(d *Declared) match.Rules {
	rules := match.Rules{Who: fmt.Sprintf("admission service %q", d.Name), Equivalent: d.Spec.MatchPolicy == admissionservice.Equivalent,
		FailOpen: d.Spec.FailurePolicy == admissionservice.Ignore}
	for _, r := range d.Spec.Rules {
		scope := admissionregistrationv1.ScopeType(r.Scope)
		rule := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
			APIGroups: r.APIGroups, APIVersions: r.APIVersions, Resources: r.Resources, Scope: &scope}}
		for _, o := range r.Operations {
			rule.Operations = append(rule.Operations, admissionregistrationv1.OperationType(o))
		}
		rules.Rules = append(rules.Rules, rule)
	}
	for _, c := range d.Spec.MatchConditions {
		rules.Conditions = append(rules.Conditions, cel.MatchCondition(c))
	}
	rules.Selectors, _ = match.ParseSelectors(d.Spec.NamespaceSelector, d.Spec.ObjectSelector) // checked before
	return rules
}
