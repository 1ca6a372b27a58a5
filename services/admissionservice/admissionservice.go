// Package admissionservice is the schema of AdmissionServices: what an object of the API
// and an entry of admission's file may say. Defaults and validation are here and nowhere
// else: the front door applies them to objects, and admission to its file. It calls no
// service. It serves "Admission plugins" of the specification.
package admissionservice

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The names of the type, the same in every vocabulary.
const (
	Group    = "extension.portico.dev"
	Version  = "v1"
	Kind     = "AdmissionService"
	Resource = "admissionservices"
	// Bypass is the verb that allows to skip a service.
	Bypass = "bypass"
)

// Protocols.
const (
	GRPC    = "grpc"
	Webhook = "webhook"
)

// Phases.
const (
	Mutate   = "Mutate"
	Validate = "Validate"
	Both     = "Both"
)

// Modes.
const (
	Enforce = "Enforce"
	Shadow  = "Shadow"
	Canary  = "Canary"
)

// Values of other fields, as in webhook configurations.
const (
	Fail         = "Fail"
	Ignore       = "Ignore"
	Exact        = "Exact"
	Equivalent   = "Equivalent"
	None         = "None"
	NoneOnDryRun = "NoneOnDryRun"
	Some         = "Some"
)

// Spec defines when and how a service is called, and the effect of its responses.
type Spec struct {
	Protocol          string                `json:"protocol"`
	Endpoint          Endpoint              `json:"endpoint"`
	Trust             Trust                 `json:"trust"`
	Phase             string                `json:"phase"`
	Order             int32                 `json:"order"`
	Rules             []Rule                `json:"rules"`
	MatchPolicy       string                `json:"matchPolicy"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	ObjectSelector    *metav1.LabelSelector `json:"objectSelector"`
	MatchConditions   []MatchCondition      `json:"matchConditions"`
	FailurePolicy     string                `json:"failurePolicy"`
	TimeoutSeconds    int32                 `json:"timeoutSeconds"`
	// BudgetPercent is the share of the remaining time of the request that one call may
	// take.
	BudgetPercent int32 `json:"budgetPercent"`
	// Batch is set if the service accepts several requests in one call.
	Batch       *Batch `json:"batch"`
	SideEffects string `json:"sideEffects"`
	Mode        string `json:"mode"`
	// CanaryPercent is the share of objects for which mode Canary enforces.
	CanaryPercent *int32 `json:"canaryPercent"`
}

// Endpoint is where a service is: exactly one of the fields is set.
type Endpoint struct {
	// Addresses are host:port, for protocol grpc. Every address of a host is a replica.
	Addresses []string `json:"addresses"`
	// URL is for protocol webhook.
	URL     string   `json:"url"`
	Service *Service `json:"service"`
}

// Batch are the limits of calls with several requests.
type Batch struct {
	MaxRequests int32 `json:"maxRequests"`
	// MaxDelayMilliseconds is how long a request may wait for others while a call is under
	// way.
	MaxDelayMilliseconds int32 `json:"maxDelayMilliseconds"`
}

// Service refers to a Service of the cluster.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Port is a number or a name.
	Port intstr.IntOrString `json:"port"`
	Path string             `json:"path"` // for protocol webhook
}

// Trust is how a service proves who it is.
type Trust struct {
	// CABundle are PEM certificates of authorities; empty: those of the system.
	CABundle []byte `json:"caBundle"`
	// ServerName is the name in the service's certificate; empty: that of the endpoint.
	ServerName string `json:"serverName"`
}

// Rule selects requests, as in webhook configurations.
type Rule struct {
	Operations  []string `json:"operations"`
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	Resources   []string `json:"resources"`
	Scope       string   `json:"scope"`
}

// MatchCondition is an expression that must be true for a request, as in webhook
// configurations.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// Complete sets the defaults of a spec, in place.
func Complete(spec map[string]any) {
	for field, value := range map[string]any{
		"protocol": GRPC, "phase": Both, "matchPolicy": Equivalent, "failurePolicy": Fail, "mode": Enforce,
		"order": int64(0), "timeoutSeconds": int64(5), "budgetPercent": int64(50),
	} {
		if spec[field] == nil {
			spec[field] = value
		}
	}
	rules, _ := spec["rules"].([]any)
	for _, item := range rules {
		if rule, ok := item.(map[string]any); ok && rule["scope"] == nil {
			rule["scope"] = "*"
		}
	}
	if batch, ok := spec["batch"].(map[string]any); ok {
		for field, value := range map[string]int64{"maxRequests": 16, "maxDelayMilliseconds": 5} {
			if batch[field] == nil {
				batch[field] = value
			}
		}
	}
	endpoint, _ := spec["endpoint"].(map[string]any)
	if service, ok := endpoint["service"].(map[string]any); ok && service["port"] == nil {
		service["port"] = int64(443)
	}
}

// Decode returns a completed spec as a struct.
func Decode(spec map[string]any) (Spec, error) {
	var s Spec
	raw, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

// Mutates and Validates report whether the service is called in a phase.
func (s *Spec) Mutates() bool   { return s.Phase != Validate }
func (s *Spec) Validates() bool { return s.Phase != Mutate }
