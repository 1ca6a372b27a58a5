package serviceips

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/resource"
)

// Parent names the Service that has an address.
type Parent struct{ Namespace, Name string }

// Shown are the ranges and addresses in use as the API shows them.
type Shown interface {
	// Networks returns further networks that Services may have addresses of.
	Networks(ctx context.Context) ([]netip.Prefix, error)
	// Reserved reports whether an address is reserved for something else than the Service.
	Reserved(ctx context.Context, address string, of Parent) (bool, error)
	// Show and Hide show that a Service has an address, or no longer has it.
	Show(ctx context.Context, address string, of Parent) error
	Hide(ctx context.Context, address string, of Parent) error
}

// union is the space of the networks of one family.
type union []Network

func (u union) kind() resource.GroupResource      { return ipClaims }
func (u union) what() string                      { return "IP" }
func (u union) claim(address string) resource.Key { return Network{}.claim(address) }

func (u union) String() string {
	names := make([]string, len(u))
	for i, n := range u {
		names[i] = n.String()
	}
	return strings.Join(names, ",")
}

func (u union) size() (sum int) {
	for _, n := range u {
		sum += n.size()
	}
	return sum
}

func (u union) at(i int) string {
	for _, n := range u {
		if i < n.size() {
			return n.at(i)
		}
		i -= n.size()
	}
	return ""
}

func (u union) contains(address string) bool {
	return slices.ContainsFunc(u, func(n Network) bool { return n.contains(address) })
}

// networks returns the networks of the flags and those that the API adds.
func (a *Assigner) networks(ctx context.Context) (Networks, error) {
	if a.Shown == nil {
		return a.Networks, nil
	}
	more, err := a.Shown.Networks(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(a.Networks)
	for _, prefix := range more {
		if prefix.Addr().BitLen()-prefix.Bits() >= 2 {
			all = append(all, Network{prefix.Masked()})
		}
	}
	return all, nil
}

// of returns the networks of a family as one space.
func (n Networks) space(family string) union {
	var all union
	for _, network := range n {
		if network.family() == family {
			all = append(all, network)
		}
	}
	return all
}

// families returns the networks that decide about the families of Services: the first of
// each family.
func (n Networks) families() Networks {
	var first Networks
	for _, network := range n {
		if _, known := first.of(network.family()); !known {
			first = append(first, network)
		}
	}
	return first
}

// reserved reports whether the API reserves an address for something else.
func (m *Assignment) reserved(ctx context.Context, key resource.Key) (bool, error) {
	if m.Shown == nil || key.GroupResource != ipClaims {
		return false, nil
	}
	return m.Shown.Reserved(ctx, key.Name, m.owner.parent())
}

// show shows which addresses a Service has and no longer has. The repair of Shown handles
// failures.
func (a *Assigner) show(ctx context.Context, of owner, has, left []resource.Key) {
	if a.Shown == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
	defer cancel()
	each := func(keys []resource.Key, do func(context.Context, string, Parent) error) {
		for _, key := range keys {
			if key.GroupResource != ipClaims {
				continue
			}
			if err := do(ctx, key.Name, of.parent()); err != nil {
				a.Log.WarnContext(ctx, "creating or deleting an IPAddress failed, the repair will retry", "address", key.Name, "error", err)
			}
		}
	}
	each(left, a.Shown.Hide)
	each(has, a.Shown.Show)
}

func (o owner) parent() Parent { return Parent{o.Namespace, o.Name} }

// AddressesOf returns the cluster IPs of a Service in canonical form.
func AddressesOf(service map[string]any) (addresses []string) {
	if s := stackOf(specOf(service)); s.has() {
		for _, ip := range s.ips {
			addresses = append(addresses, Network{}.claim(ip).Name)
		}
	}
	return addresses
}

func keysOf(claims []claim) []resource.Key {
	keys := make([]resource.Key, len(claims))
	for i, c := range claims {
		keys[i] = c.key
	}
	return keys
}

var _ space = union{}
