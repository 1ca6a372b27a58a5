package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// escalatingExec rejects exec and attach on pods with host privileges.
type escalatingExec struct {
	store services.Reader
}

type hostPod struct {
	Spec struct {
		HostPID        bool        `json:"hostPID"`
		HostIPC        bool        `json:"hostIPC"`
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
	} `json:"spec"`
}

type container struct {
	SecurityContext struct {
		Privileged bool `json:"privileged"`
	} `json:"securityContext"`
}

// power describes the host privilege of the pod, empty if it has none.
func (p *hostPod) power() string {
	switch {
	case p.Spec.HostPID:
		return "host PID"
	case p.Spec.HostIPC:
		return "host IPC"
	}
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		if c.SecurityContext.Privileged {
			return "a privileged container"
		}
	}
	return ""
}

func (p escalatingExec) validate(ctx context.Context, r *review.Review) error {
	if !r.Is(services.OperationConnect, "", "pods/exec") && !r.Is(services.OperationConnect, "", "pods/attach") {
		return nil
	}
	stored, err := p.store.Get(ctx, services.GetRequest{
		Key: resource.Key{GroupResource: r.Type(), Namespace: r.Namespace, Name: r.Name}})
	if err != nil {
		return err
	}
	var pod hostPod
	if err := json.Unmarshal(stored.JSON, &pod); err != nil {
		return fmt.Errorf("reading pod %s/%s: %w", r.Namespace, r.Name, err)
	}
	if power := pod.power(); power != "" {
		return r.Forbid("cannot exec into or attach to a pod with %s", power)
	}
	return nil
}
