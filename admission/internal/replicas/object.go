package replicas

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// maxText bounds the message of a refusal, and maxCauses how many causes it has.
	maxText   = 8 << 10
	maxCauses = 100
)

// trimmed bounds a refusal, in place: it is sent to the client.
func trimmed(s *services.Status) *services.Status {
	if len(s.Message) > maxText {
		s.Message = strings.ToValidUTF8(s.Message[:maxText], "")
	}
	if s.Details != nil && len(s.Details.Causes) > maxCauses {
		details := *s.Details
		details.Causes = details.Causes[:maxCauses]
		s.Details = &details
	}
	return s
}

// identity is what of an object a service must not change: it would be another object.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
		Namespace    string `json:"namespace"`
		UID          string `json:"uid"`
	} `json:"metadata"`
}

// checkObject checks an object that a service returns; nil is none.
func checkObject(r services.AdmissionRequest, object []byte) error {
	if object == nil {
		return nil
	}
	if len(r.Object) == 0 {
		return errors.New("it returned an object where the operation has none")
	}
	if len(object) > jsonpatch.MaxBytes {
		return fmt.Errorf("it returned an object of %d bytes; at most %d are allowed", len(object), jsonpatch.MaxBytes)
	}
	if _, err := ledger.Body.Check(object); err != nil {
		return fmt.Errorf("it returned an object that is too large: %w", err)
	}
	var before, after identity
	if err := json.Unmarshal(r.Object, &before); err != nil {
		return err
	}
	if err := json.Unmarshal(object, &after); err != nil {
		return fmt.Errorf("it returned no object: %w", err)
	}
	if before != after {
		return errors.New("it returned another object: apiVersion, kind, name, generateName, namespace and uid must stay")
	}
	if _, err := tree.Decode(object); err != nil {
		return fmt.Errorf("it returned no object: %w", err)
	}
	return nil
}
