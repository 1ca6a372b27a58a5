package serviceranges

import (
	"context"
	"errors"
	"net/netip"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// managedBy is the value of the label of IPAddresses that this package manages.
func (k Keeper) managedBy() string { return k.Vocabulary.Group("ipallocator.") }

func (k Keeper) managedLabel() string { return k.Vocabulary.Qualified("ipaddress", "managed-by") }

// Reserved reports whether an IPAddress reserves the address for something else than the
// Service. It serves serviceips.Shown.
func (k Keeper) Reserved(ctx context.Context, address string, of serviceips.Parent) (bool, error) {
	t := k.typeOf("IPAddress")
	if t == nil {
		return false, nil
	}
	o, err := k.Store.Get(ctx, services.GetRequest{Key: keyOf(t, address)})
	if services.IsReason(err, services.ReasonNotFound) || err == nil && o.Labels[k.managedLabel()] == k.managedBy() {
		return false, nil // the claim decides
	}
	if err != nil {
		return false, err
	}
	object, err := tree.Decode(o.JSON)
	return parentOf(object) != of, err
}

// Show creates the IPAddress of an address that a Service has. It serves serviceips.Shown.
func (k Keeper) Show(ctx context.Context, address string, of serviceips.Parent) error {
	t := k.typeOf("IPAddress")
	ip, err := netip.ParseAddr(address)
	if t == nil || err != nil {
		return err
	}
	family := "IPv4"
	if !ip.Unmap().Is4() {
		family = "IPv6"
	}
	object := map[string]any{"apiVersion": t.APIVersion(), "kind": t.Kind,
		"metadata": map[string]any{"name": address, "labels": map[string]any{
			k.Vocabulary.Qualified("ipaddress", "ip-family"): family, k.managedLabel(): k.managedBy()}},
		"spec": map[string]any{"parentRef": map[string]any{"group": "", "resource": "services", "namespace": of.Namespace, "name": of.Name}}}
	err = k.Writes.Create(ctx, k.Engine(), t, object)
	if !services.IsReason(err, services.ReasonAlreadyExists) {
		return err
	}
	stored, err := k.Store.Get(ctx, services.GetRequest{Key: keyOf(t, address)})
	if err != nil || stored.Labels[k.managedLabel()] != k.managedBy() {
		return ignoreNotFound(err)
	}
	former, err := tree.Decode(stored.JSON)
	if err != nil || parentOf(former) == of {
		return err
	}
	// The Service that had the address is gone: its IPAddress is replaced.
	if err := k.delete(ctx, stored); err != nil {
		return err
	}
	return k.Writes.Create(ctx, k.Engine(), t, object)
}

// Hide deletes the IPAddress of an address that a Service no longer has. It serves
// serviceips.Shown.
func (k Keeper) Hide(ctx context.Context, address string, of serviceips.Parent) error {
	t := k.typeOf("IPAddress")
	if t == nil {
		return nil
	}
	o, err := k.Store.Get(ctx, services.GetRequest{Key: keyOf(t, address)})
	if err != nil {
		return ignoreNotFound(err)
	}
	object, err := tree.Decode(o.JSON)
	if err != nil || parentOf(object) != of {
		return err
	}
	return k.delete(ctx, o)
}

func (k Keeper) delete(ctx context.Context, o services.Object) error {
	_, err := k.Store.Delete(ctx, services.DeleteRequest{Key: o.Key, Revision: o.Revision})
	return ignoreNotFound(err)
}

// reconcile creates missing IPAddresses and deletes those of Services that are gone, which a
// crash leaves behind.
func (k Keeper) reconcile(ctx context.Context) error {
	t := k.typeOf("IPAddress")
	if t == nil {
		return nil
	}
	shown := map[string]services.Object{}
	_, err := services.ForEach(ctx, k.Store, services.ListRequest{GroupResource: t.GroupResource()}, func(o services.Object) error {
		shown[o.Key.Name] = services.Object{Key: o.Key, Revision: o.Revision, Labels: o.Labels, JSON: o.JSON}
		return nil
	})
	if err != nil {
		return err
	}
	// After the IPAddresses: they are newer than their Services.
	var errs []error
	_, err = services.ForEach(ctx, k.Store, services.ListRequest{GroupResource: serviceips.Services}, func(o services.Object) error {
		service, err := tree.Decode(o.JSON)
		if err != nil {
			return err
		}
		of := serviceips.Parent{Namespace: o.Key.Namespace, Name: o.Key.Name}
		for _, address := range serviceips.AddressesOf(service) {
			if known, ok := shown[address]; ok && k.isOf(known, of) {
				delete(shown, address)
				continue
			}
			delete(shown, address)
			errs = append(errs, k.Show(ctx, address, of))
		}
		return nil
	})
	if err == nil {
		for _, o := range shown {
			if o.Labels[k.managedLabel()] == k.managedBy() {
				errs = append(errs, k.delete(ctx, o))
			}
		}
	}
	return errors.Join(append(errs, err)...)
}

// isOf reports whether an IPAddress is that of a Service.
func (k Keeper) isOf(o services.Object, of serviceips.Parent) bool {
	object, err := tree.Decode(o.JSON)
	return err == nil && parentOf(object) == of
}

// parentOf returns the Service that an IPAddress refers to; of another object "".
func parentOf(address map[string]any) serviceips.Parent {
	ref := tree.Child(tree.Child(address, "spec"), "parentRef")
	if tree.Text(ref, "group") != "" || tree.Text(ref, "resource") != "services" {
		return serviceips.Parent{}
	}
	return serviceips.Parent{Namespace: tree.Text(ref, "namespace"), Name: tree.Text(ref, "name")}
}

func keyOf(t *catalogue.Type, address string) resource.Key {
	return resource.Key{GroupResource: t.GroupResource(), Name: address}
}

// ignoreNotFound returns nil for objects that are gone or have been changed by others.
func ignoreNotFound(err error) error {
	if services.IsReason(err, services.ReasonNotFound) || services.IsConflict(err) {
		return nil
	}
	return err
}
