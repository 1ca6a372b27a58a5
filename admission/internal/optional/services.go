package optional

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// DenyServiceExternalIPs refuses with Forbidden (403) services with external IPs that
// they did not have before.
func DenyServiceExternalIPs(_ context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, "", "services") && !r.Is(services.OperationUpdate, "", "services") {
		return nil
	}
	object, err := r.Current()
	if err != nil {
		return err
	}
	wanted, err := externalIPs(object)
	if err != nil {
		return services.BadRequest("the service is not readable: %v", err)
	}
	if len(wanted) == 0 {
		return nil
	}
	before := map[string]bool{}
	if r.Operation == services.OperationUpdate {
		had, err := externalIPs(r.OldObject)
		if err != nil {
			return fmt.Errorf("reading the stored service: %w", err)
		}
		for _, ip := range had {
			before[ip] = true
		}
	}
	for _, ip := range wanted {
		if !before[ip] {
			return r.Forbid("Use of external IPs is denied by admission control")
		}
	}
	return nil
}

func externalIPs(object []byte) ([]string, error) {
	var service struct {
		Spec struct {
			ExternalIPs []string `json:"externalIPs"`
		} `json:"spec"`
	}
	err := json.Unmarshal(object, &service)
	return service.Spec.ExternalIPs, err
}
