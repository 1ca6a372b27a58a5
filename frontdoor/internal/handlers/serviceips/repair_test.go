package serviceips

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

func allClaims(t *testing.T, a *Assigner) (map[resource.Key]claim, error) {
	t.Helper()
	claims, _, err := (&Repair{Assigner: a}).claims(t.Context(), func(services.Object) bool { return true })
	return claims, err
}

// TestRepair finds unused claims and Services without claims.
func TestRepair(t *testing.T) {
	a := newAssigner(t, "10.0.0.0/29", "30000-30010")
	r := &Repair{Assigner: a}
	once := func(claims int) {
		t.Helper()
		if err := r.Whole(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := allClaims(t, a); err != nil || len(all) != claims {
			t.Fatalf("%d claims (%v), want %d", len(all), err, claims)
		}
	}
	left := serviceOf(t, "left", `{type: NodePort, ports: [{port: 1}]}`)
	if _, err := a.Assign(t.Context(), Request{Service: left}); err != nil {
		t.Fatal(err)
	}
	once(2) // its Service may be about to be stored
	if _, err := a.Assign(t.Context(), Request{Service: left}); err != nil {
		t.Fatal(err)
	}
	once(2) // and was renewed
	once(0)

	bare := `{"metadata":{"name":"bare","namespace":"default","uid":"bare"},"spec":{"type":"ClusterIP","clusterIPs":["10.0.0.4"]}}`
	key := services.CreateRequest{Content: services.Content{JSON: []byte(bare)}}
	key.Key.GroupResource, key.Key.Namespace, key.Key.Name = Services, "default", "bare"
	if _, err := a.Store.Create(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	once(1)
	once(1)
}

// storeService stores a Service as a write does, under what its claims require.
func storeService(t *testing.T, in services.Store, service map[string]any, m *Assignment) error {
	t.Helper()
	raw, err := json.Marshal(service)
	if err != nil {
		t.Fatal(err)
	}
	key := resource.Key{GroupResource: Services, Namespace: m.owner.Namespace, Name: m.owner.Name}
	_, err = in.Create(t.Context(), services.CreateRequest{Key: key, Content: services.Content{JSON: raw, UID: m.owner.UID}, Requires: m.Requires()})
	return err
}

// young runs passes over young claims and checks how many claims are left.
func young(t *testing.T, r *Repair, claims ...int) {
	t.Helper()
	for i, want := range claims {
		if err := r.Young(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := allClaims(t, r.Assigner); err != nil || len(all) != want {
			t.Fatalf("pass %d: %d claims (%v), want %d", i, len(all), err, want)
		}
	}
}

// TestRepairAfterCrash: what a write has claimed before its front door crashed is free
// after two passes. One that was only slow, and stores its Service later, has lost it.
func TestRepairAfterCrash(t *testing.T) {
	a := newAssigner(t, "10.0.0.0/30", "30000-30010")
	r := &Repair{Assigner: a}
	kept := serviceOf(t, "kept", `{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}`)
	m, err := a.Assign(t.Context(), Request{Service: kept})
	if err != nil {
		t.Fatal(err)
	}
	young(t, r, 1)
	if err := storeService(t, a.Store, kept, m); err != nil {
		t.Fatal(err)
	}
	young(t, r, 1, 1, 1)

	slow := serviceOf(t, "slow", `{type: NodePort, ports: [{port: 1}]}`)
	m, err = a.Assign(t.Context(), Request{Service: slow})
	if err != nil {
		t.Fatal(err)
	}
	young(t, r, 3, 1)
	if err := storeService(t, a.Store, slow, m); !Lost(err) {
		t.Errorf("a Service without claims was stored: %v", err)
	}
	store(t, a, serviceOf(t, "next", `{type: ClusterIP}`), nil)
}

// late stores a Service between the last read of it and the deletion of its claim.
type late struct {
	services.Store
	write func()
}

func (l *late) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	o, err := l.Store.Get(ctx, r)
	if r.Key.GroupResource == Services && l.write != nil {
		l.write()
	}
	return o, err
}

// TestRepairDuringWrite: a Service is stored at any moment of the pass that releases its
// claim. It is either stored with its claim, or not at all.
func TestRepairDuringWrite(t *testing.T) {
	for _, moment := range []string{"before", "during"} {
		a := newAssigner(t, "10.0.0.0/30", "30000-30010")
		in := &late{Store: a.Store}
		r := &Repair{Assigner: New(a.Config)}
		r.Store = in
		service := serviceOf(t, "s", `{type: ClusterIP}`)
		m, err := a.Assign(t.Context(), Request{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		young(t, r, 1)
		var stored error
		write := func() {
			in.write = nil
			stored = storeService(t, a.Store, service, m)
		}
		if moment == "during" {
			// The first look is the pass's own, the second follows the renewal.
			in.write = func() { in.write = write }
		} else {
			write()
		}
		if err := r.Young(t.Context()); err != nil {
			t.Fatal(err)
		}
		claims, err := allClaims(t, a)
		if err != nil || (stored == nil) != (len(claims) == 1) || stored != nil && !Lost(stored) {
			t.Errorf("%s: the write ended with %v, and there are %d claims (%v)", moment, stored, len(claims), err)
		}
	}
}

// TestRequiresOldest: of more claims than a write can require, the oldest count.
func TestRequiresOldest(t *testing.T) {
	m := &Assignment{}
	for i := range services.MaxRequirements + 5 {
		m.claimed = append(m.claimed, claim{revision: int64(1000 - i)})
	}
	m.renewed = []claim{{revision: 1}}
	all := m.Requires()
	if len(all) != services.MaxRequirements || all[0].Revision != 1 || all[len(all)-1].Revision != int64(1000-(services.MaxRequirements+5)+services.MaxRequirements-1) {
		t.Errorf("%d requirements: %+v", len(all), all)
	}
}
