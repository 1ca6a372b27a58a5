// Package serviceips assigns cluster IPs and node ports to Services, so that no two
// Services ever have the same. Each address in use has a claim in the store, outside of
// what the API shows. Creating the claim is the compare-and-swap that decides between
// writers in all replicas. A claim is created before its Service is stored, and deleted
// if the store refuses the Service or when the Service is deleted or changed. The
// repair finds what a crash leaves behind. It cannot know whether a write is still in
// progress, so the Service is stored in a transaction that requires its claims.
//
// The package never stores a Service. It serves "Resources and their fields" and "Dry-run"
// of the specification.
package serviceips

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Services is the type of the objects that have addresses.
var Services = resource.GroupResource{Resource: "services"}

// The resources of claims, which the API does not serve.
var (
	ipClaims   = resource.GroupResource{Group: "portico", Resource: "cluster-ips"}
	portClaims = resource.GroupResource{Group: "portico", Resource: "node-ports"}
)

// giveBackWithin bounds the cleanup after the outcome of the write is known.
const giveBackWithin = 10 * time.Second

// Config configures an Assigner.
type Config struct {
	Store services.Store
	// Networks are the ranges of cluster IPs, at most one per family. The first one is
	// the default for Services that request no family.
	Networks Networks
	// NodePorts is the range of node ports.
	NodePorts Ports
	// Shown shows the addresses in the API; nil if it does not have them.
	Shown Shown
	Log   *slog.Logger
}

// Assigner assigns addresses. It is stateless: any number of them may share a store.
type Assigner struct {
	Config
}

// New returns an Assigner.
func New(c Config) *Assigner { return &Assigner{c} }

// Request requests the addresses of one Service.
type Request struct {
	// Service is the object to be stored. Assign writes the addresses into it.
	Service map[string]any
	// Live is the stored Service; nil for a new one.
	Live map[string]any
	// DryRun claims nothing.
	DryRun bool
}

// Assignment holds the claims of one Service during its write. The caller calls Keep or
// Undo, or neither if the outcome of the write is unknown: then the repair decides.
type Assignment struct {
	*Assigner
	owner   owner
	dryRun  bool
	claimed []claim // created for this request
	renewed []claim // created for another write of the Service, and renewed for this one
	leaving []claim // of addresses that the Service gives up
	taken   map[resource.Key]bool
}

// Assign claims the addresses of a Service and writes them into it. It returns Invalid
// (422) if a requested address is not available, and an InternalError (500) if no address
// is left. After an error it holds no claims.
func (a *Assigner) Assign(ctx context.Context, r Request) (*Assignment, error) {
	m := &Assignment{Assigner: a, owner: ownerOf(r.Service), dryRun: r.DryRun, taken: map[resource.Key]bool{}}
	held := a.held(r.Live)
	for _, key := range held {
		m.taken[key] = true
	}
	err := m.fill(ctx, r)
	if err == nil {
		err = m.leave(ctx, held, a.held(r.Service))
	}
	if err != nil {
		m.Undo(ctx)
		return nil, err
	}
	return m, nil
}

// fill determines the addresses that the Service needs and claims each.
func (m *Assignment) fill(ctx context.Context, r Request) error {
	var problems field.Errors
	spec, before := specOf(r.Service), specOf(r.Live)
	networks, err := m.networks(ctx)
	if err != nil {
		return err
	}
	needs := m.clusterIPs(spec, before, networks, &problems)
	needs = append(needs, m.nodePorts(spec, &problems)...)
	needs = append(needs, m.healthPort(spec, before, &problems)...)
	if causes := problems.Causes(); len(causes) > 0 {
		return m.invalid(causes)
	}
	for _, need := range needs {
		if err := m.meet(ctx, need); err != nil {
			return err
		}
	}
	return nil
}

// need is one address that a Service needs.
type need struct {
	from  space
	given string // the requested one; any if empty
	at    *field.Path
	shown any // the field's value, for errors
	set   func(address string)
}

// failed returns the beginning of a message about an address that cannot be claimed.
func (n need) failed() string {
	if n.from.kind() != ipClaims {
		return ""
	}
	return "failed to allocate IP " + n.given + ": "
}

// outside returns the message about an address that the range does not contain.
func (n need) outside() string {
	provided := "provided port"
	if n.from.kind() == ipClaims {
		provided = "the provided IP (" + n.given + ")"
	}
	return n.failed() + provided + " is not in the valid range. The range of valid " + n.from.what() + "s is " + n.from.String()
}

// meet claims one address.
func (m *Assignment) meet(ctx context.Context, n need) error {
	if n.given == "" {
		c, err := m.claimAny(ctx, n.from)
		if err != nil {
			return err
		}
		n.set(c.key.Name)
		return nil
	}
	key := n.from.claim(n.given)
	if m.taken[key] {
		return nil
	}
	var problems field.Errors
	if !n.from.contains(n.given) {
		problems.Invalid(n.at, n.shown, n.outside())
		return m.invalid(problems.Causes())
	}
	reserved, err := m.reserved(ctx, key)
	if err != nil {
		return err
	}
	free := false
	if !reserved {
		free, err = m.claimGiven(ctx, key)
	}
	switch {
	case err != nil:
		return err
	case !free:
		problems.Invalid(n.at, n.shown, n.failed()+"provided "+n.from.what()+" is already allocated")
		return m.invalid(problems.Causes())
	}
	return nil
}

func (m *Assignment) invalid(causes []services.StatusCause) error {
	return services.Invalid("", "Service", m.owner.Name, causes)
}

// leave records the claims of addresses that the Service gives up, at their current
// revisions: one that is renewed in the meantime is not deleted.
func (m *Assignment) leave(ctx context.Context, before, after []resource.Key) error {
	if m.dryRun {
		return nil
	}
	kept := map[resource.Key]bool{}
	for _, key := range after {
		kept[key] = true
	}
	for _, key := range before {
		if kept[key] {
			continue
		}
		c, err := m.lookup(ctx, key)
		switch {
		case services.IsReason(err, services.ReasonNotFound):
		case err != nil:
			return err
		case c.owner.UID == m.owner.UID:
			m.leaving = append(m.leaving, c)
		}
	}
	return nil
}

// Requires returns what the write of the Service has to require: its new claims. Of more
// than a transaction can require it returns the oldest ones, which the repair drops
// first.
func (m *Assignment) Requires() []services.Requirement {
	claims := append(slices.Clone(m.claimed), m.renewed...)
	slices.SortFunc(claims, byRevision)
	var all []services.Requirement
	for _, c := range claims[:min(len(claims), services.MaxRequirements)] {
		all = append(all, services.Requirement{Key: c.key, Revision: c.revision})
	}
	return all
}

// Lost reports whether a Service was not stored because a claim that it requires has been
// dropped or renewed. Nothing keeps another attempt from success.
func Lost(err error) bool {
	if !services.IsConflict(err) {
		return false
	}
	details := services.AsStatus(err).Details
	return details != nil && details.Group == ipClaims.Group
}

// Keep frees the addresses that the Service gave up. Call it when the Service was
// stored.
func (m *Assignment) Keep(ctx context.Context) {
	if !m.dryRun {
		m.show(ctx, m.owner, keysOf(append(slices.Clone(m.claimed), m.renewed...)), keysOf(m.leaving))
	}
	m.giveBack(ctx, m.leaving)
}

// Undo frees the addresses claimed for the Service. Call it when the Service was not
// stored.
func (m *Assignment) Undo(ctx context.Context) { m.giveBack(ctx, m.claimed) }

// Release frees the addresses of a deleted Service.
func (a *Assigner) Release(ctx context.Context, service map[string]any) {
	ctx = context.WithoutCancel(ctx)
	var claims []claim
	uid := ownerOf(service).UID
	for _, key := range a.held(service) {
		if c, err := a.lookup(ctx, key); err == nil && c.owner.UID == uid {
			claims = append(claims, c)
		}
	}
	a.show(ctx, ownerOf(service), nil, keysOf(claims))
	a.giveBack(ctx, claims)
}

// giveBack deletes claims, even if the request is cancelled. The repair handles
// failures.
func (a *Assigner) giveBack(ctx context.Context, claims []claim) {
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
	defer cancel()
	for _, c := range claims {
		if err := a.drop(ctx, c); err != nil {
			a.Log.WarnContext(ctx, "releasing an address failed, the repair will retry", "claim", c.key, "error", err)
		}
	}
}
