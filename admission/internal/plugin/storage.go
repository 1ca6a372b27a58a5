package plugin

import (
	"context"
	"encoding/json"
	"slices"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quantity"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// inUseProtection returns a plugin that adds a finalizer to new volumes, claims and classes of
// their attributes, so that they are not removed while they are in use.
func inUseProtection(v vocabulary.Vocabulary) Plugin {
	finalizers := map[string]string{"persistentvolumes": v.VolumeFinalizer(), "persistentvolumeclaims": v.ClaimFinalizer(), "volumeattributesclasses": v.AttributesClassFinalizer()}
	concerns := either(about("", "persistentvolumeclaims", "persistentvolumes"), about(v.Group("storage."), "volumeattributesclasses"))
	mutate := func(_ context.Context, r *review.Review) error {
		finalizer := finalizers[r.Resource]
		if !concerns(r) || !r.Is(services.OperationCreate, r.Group, r.Resource) {
			return nil
		}
		object, err := r.Decoded()
		if err != nil {
			return err
		}
		metadata := tree.Child(object, "metadata")
		held := tree.List(metadata, "finalizers")
		if metadata == nil || slices.Contains(held, any(finalizer)) {
			return nil
		}
		metadata["finalizers"] = append(held, finalizer)
		r.Changed()
		return nil
	}
	return Plugin{Name: "StorageObjectInUseProtection", Default: true, Concerns: concerns, Mutate: mutate}
}

// claimResize rejects the expansion of claims that are not bound or whose class does not
// allow it.
type claimResize struct {
	classes review.Collection[Class]
	// annotation is deprecated; it names a class and has precedence over the field.
	annotation string
}

// size is a quantity that is read with the bounds of package quantity.
type size struct{ apiresource.Quantity }

// UnmarshalJSON implements json.Unmarshaler.
func (s *size) UnmarshalJSON(raw []byte) (err error) {
	s.Quantity, err = quantity.ParseJSON(raw)
	return err
}

// storageClaim is the part of a claim that its expansion depends on.
type storageClaim struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		StorageClassName string `json:"storageClassName"`
		Resources        struct {
			Requests struct {
				Storage size `json:"storage"`
			} `json:"requests"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

func (p claimResize) validate(_ context.Context, r *review.Review) error {
	if !r.Is(services.OperationUpdate, "", "persistentvolumeclaims") {
		return nil
	}
	var before, after storageClaim
	if err := json.Unmarshal(r.OldObject, &before); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Object, &after); err != nil {
		return services.BadRequest("the claim is not readable: %v", err)
	}
	if after.Spec.Resources.Requests.Storage.Cmp(before.Spec.Resources.Requests.Storage.Quantity) <= 0 {
		return nil
	}
	if before.Status.Phase != "Bound" {
		return r.Forbid("Only bound persistent volume claims can be expanded")
	}
	name := p.classOf(after)
	if class, ok := p.classes.Get("", name); !ok || !class.Expands || name == "" || name != p.classOf(before) {
		return r.Forbid("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	}
	return nil
}

func (p claimResize) classOf(c storageClaim) string {
	if name, ok := c.Metadata.Annotations[p.annotation]; ok {
		return name
	}
	return c.Spec.StorageClassName
}
