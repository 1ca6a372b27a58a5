package admissionservice

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions of the status.
const (
	// Accepted is whether the spec can be used.
	Accepted = "Accepted"
	// Available is whether a replica of the service can be called.
	Available = "Available"
)

// Status is what admission reports about a service. Only admission writes it.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// Observers are the processes of admission, each with its own view.
	Observers []Observer `json:"observers,omitempty"`
}

// Observer is the view of one process of admission.
type Observer struct {
	Name       string      `json:"name"`
	ObservedAt metav1.Time `json:"observedAt"`
	// Breaker is Closed, HalfOpen or Open: the best of its replicas.
	Breaker   string    `json:"breaker"`
	Calls     Counts    `json:"calls"`
	LastError string    `json:"lastError,omitempty"`
	Replicas  []Replica `json:"replicas,omitempty"`
}

// Counts are the calls since a process of admission began to ask the service.
type Counts struct {
	Allowed int64 `json:"allowed"`
	Denied  int64 `json:"denied"`
	Failed  int64 `json:"failed"`
}

// Replica is one address of a service.
type Replica struct {
	Address   string `json:"address"`
	Ready     bool   `json:"ready"`
	Breaker   string `json:"breaker"`
	LastError string `json:"lastError,omitempty"`
}
