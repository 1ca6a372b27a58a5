// Package devices restricts who may write which parts of claims of devices. It serves
// "Admission plugins" of the specification.
package devices

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	claims    = "resourceclaims"
	templates = "resourceclaimtemplates"
)

// Plugin checks claims of devices and their templates.
type Plugin struct {
	Namespaces namespaces.Known
	Authz      services.Authz
	Vocabulary vocabulary.Vocabulary
	// Status also checks who may write which parts of the status.
	Status bool
}

// claim is the part of a claim that the plugin reads, in any version.
type claim struct {
	Spec struct {
		devices
		Spec devices `json:"spec"` // of a template
	} `json:"spec"`
	Status struct {
		Allocation *struct {
			Devices struct {
				Results []struct {
					AdminAccess bool `json:"adminAccess"`
				} `json:"results"`
			} `json:"devices"`
			NodeSelector any `json:"nodeSelector"`
		} `json:"allocation"`
	} `json:"status"`
}

type devices struct {
	Devices struct {
		Requests []struct {
			AdminAccess bool `json:"adminAccess"` // of v1beta1
			Exactly     struct {
				AdminAccess bool `json:"adminAccess"`
			} `json:"exactly"`
		} `json:"requests"`
	} `json:"devices"`
}

// Concerns reports whether the plugin handles a request.
func (p Plugin) Concerns(r *review.Review) bool {
	return r.Group == p.Vocabulary.Group("resource.") && (r.Resource == claims || r.Resource == templates)
}

// Validate refuses access of an administrator to devices in namespaces that do not allow it,
// and changes of a status by users who may not make them, with Invalid (422) that names the
// field.
func (p Plugin) Validate(ctx context.Context, r *review.Review) error {
	group := p.Vocabulary.Group("resource.")
	created := r.Is(services.OperationCreate, group, claims) || r.Is(services.OperationCreate, group, templates)
	if !created && !r.Is(services.OperationUpdate, group, claims+"/status") {
		return nil
	}
	now, before, err := p.read(r)
	if err != nil {
		return err
	}
	if field := newAccess(now, before, created); field != "" {
		if err := p.mayAdminister(ctx, r, field); err != nil {
			return err
		}
	}
	if created || !p.Status {
		return nil
	}
	return p.mayReport(ctx, r, now.Status.Allocation != nil)
}

// read returns the object of a request, and the one that is stored.
func (p Plugin) read(r *review.Review) (now, before claim, err error) {
	if err = json.Unmarshal(r.Object, &now); err == nil && len(r.OldObject) > 0 {
		err = json.Unmarshal(r.OldObject, &before)
	}
	if err != nil {
		err = services.BadRequest("the claim is not readable: %v", err)
	}
	return now, before, err
}

// newAccess returns the path of the first field that requests or grants the access of an
// administrator; "" if there is none, or it has been granted before.
func newAccess(now, before claim, created bool) string {
	if granted(before) != "" {
		return ""
	}
	if !created && (before.Status.Allocation != nil || now.Status.Allocation != nil) {
		return granted(now)
	}
	for _, d := range []devices{now.Spec.devices, now.Spec.Spec} {
		for i, request := range d.Devices.Requests {
			if request.AdminAccess || request.Exactly.AdminAccess {
				return fmt.Sprintf("spec.devices.requests[%d].adminAccess", i)
			}
		}
	}
	return granted(now)
}

func granted(c claim) string {
	if c.Status.Allocation == nil {
		return ""
	}
	for i, result := range c.Status.Allocation.Devices.Results {
		if result.AdminAccess {
			return fmt.Sprintf("status.allocation.devices.results[%d].adminAccess", i)
		}
	}
	return ""
}

// mayAdminister checks that a namespace allows the access of administrators. It reads the
// namespace itself when the mirror says no.
func (p Plugin) mayAdminister(ctx context.Context, r *review.Review, field string) error {
	label := p.Vocabulary.Qualified("resource", "admin-access")
	known, err := p.Namespaces.Get(ctx, r.Namespace)
	if err == nil && known.Labels[label] != "true" {
		known, err = p.Namespaces.Read(ctx, r.Namespace)
	}
	if err != nil {
		return err
	}
	if known.Labels[label] == "true" {
		return nil
	}
	return refuse(r, field, "admin access to devices requires the `%s: true` label on the containing namespace", label)
}

func refuse(r *review.Review, field, why string, args ...any) error {
	return services.Invalid(r.Group, r.Kind, r.Name, []services.StatusCause{{Reason: services.CauseForbidden, Field: field, Message: "Forbidden: " + fmt.Sprintf(why, args...)}})
}

// status is the status of a claim, by parts.
type status struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Allocation  any              `json:"allocation"`
		ReservedFor []any            `json:"reservedFor"`
		Devices     []map[string]any `json:"devices"`
	} `json:"status"`
}

// mayReport checks who changes the status: what is allocated and reserved takes the permission
// to bind claims, what is reported about devices that to report for their driver.
func (p Plugin) mayReport(ctx context.Context, r *review.Review, allocated bool) error {
	var now, before status
	if json.Unmarshal(r.Object, &now) != nil || json.Unmarshal(r.OldObject, &before) != nil {
		return services.BadRequest("the status of the claim is not readable")
	}
	if !equality.Semantic.DeepEqual(now.Status.Allocation, before.Status.Allocation) || !equality.Semantic.DeepEqual(now.Status.ReservedFor, before.Status.ReservedFor) {
		// The verb is not known here: a patch is an update.
		denied, err := p.denied(ctx, r, services.Attributes{Subresource: "binding"}, "update", "patch")
		if err != nil || denied != "" {
			return either(err, refuse(r, "status.allocation", `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" or "patch" permission: %s`, denied))
		}
	}
	if !allocated {
		return nil // reports about devices that are no longer allocated are dropped
	}
	verbs := []string{"arbitrary-node:update", "arbitrary-node:patch"}
	if node := nodeOf(now.Status.Allocation); node != "" && onNode(r.User, p.Vocabulary, node) {
		verbs = append([]string{"associated-node:update", "associated-node:patch"}, verbs...)
	}
	for _, driver := range changedDrivers(now.Status.Devices, before.Status.Devices) {
		denied, err := p.denied(ctx, r, services.Attributes{Subresource: "driver", Namespace: r.Namespace, Name: driver}, verbs...)
		if err != nil || denied != "" {
			return either(err, refuse(r, "status.devices", `changing status.devices requires resource="resourceclaims/driver", verb="%s" permission on %q: %s`, strings.Join(verbs, `" or "`), driver, denied))
		}
	}
	return nil
}

func either(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// denied returns "" if the user has one of the verbs, else what a request with the first of them would be
// answered.
func (p Plugin) denied(ctx context.Context, r *review.Review, a services.Attributes, verbs ...string) (string, error) {
	a.User, a.Group, a.Version, a.Resource = r.User, r.Group, r.Version, claims
	for _, verb := range verbs {
		a.Verb = verb
		decision, err := p.Authz.Authorize(ctx, a)
		if err != nil || decision.Allowed {
			return "", err
		}
	}
	scope := " at the cluster scope"
	if a.Namespace != "" {
		scope = fmt.Sprintf(" in the namespace %q", a.Namespace)
	}
	return services.Forbidden(a.Group, a.Resource, a.Name, fmt.Sprintf("User %q cannot %s resource %q in API group %q%s",
		a.User.Name, verbs[0], a.Resource+"/"+a.Subresource, a.Group, scope)).Message, nil
}

// changedDrivers returns, in order, the drivers of the devices about which the report changes.
func changedDrivers(now, before []map[string]any) []string {
	had := map[string]map[string]any{}
	for _, device := range before {
		had[identityOf(device)] = device
	}
	changed := map[string]bool{}
	for _, device := range now {
		id := identityOf(device)
		if was, ok := had[id]; !ok || !equality.Semantic.DeepEqual(was, device) {
			changed[driverOf(device)] = true
		}
		delete(had, id)
	}
	for _, device := range had {
		changed[driverOf(device)] = true
	}
	names := make([]string, 0, len(changed))
	for name := range changed {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func identityOf(device map[string]any) string {
	return fmt.Sprintf("%q %q %q %q", device["driver"], device["pool"], device["device"], device["shareID"])
}

func driverOf(device map[string]any) string {
	name, _ := device["driver"].(string)
	return name
}

// nodeOf returns the node on which all allocated devices are; "" if there is no such node.
func nodeOf(allocation any) string {
	var read struct {
		NodeSelector struct {
			NodeSelectorTerms []struct {
				MatchExpressions []any `json:"matchExpressions"`
				MatchFields      []struct {
					Key, Operator string
					Values        []string
				} `json:"matchFields"`
			} `json:"nodeSelectorTerms"`
		} `json:"nodeSelector"`
	}
	raw, err := json.Marshal(allocation)
	if err != nil || json.Unmarshal(raw, &read) != nil || len(read.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := read.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 {
		return ""
	}
	if f := term.MatchFields[0]; f.Key == "metadata.name" && f.Operator == "In" && len(f.Values) == 1 {
		return f.Values[0]
	}
	return ""
}

// onNode reports whether a user is a service account whose token is bound to a pod on a node.
func onNode(user services.UserInfo, v vocabulary.Vocabulary, node string) bool {
	names := user.Extra[v.Qualified("authentication", "node-name")]
	return strings.HasPrefix(user.Name, "system:serviceaccount:") && len(names) == 1 && names[0] == node
}
