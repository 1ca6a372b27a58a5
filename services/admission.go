package services

import "context"

// Admission looks at every request that creates, changes, deletes or connects,
// after authorization (section "Admission plugins"). It is shaped after
// AdmissionReview. Only the front door may call it.
type Admission interface {
	// Mutate lets the plugins change the object, in their order. The error is a
	// *Status when a plugin rejects the request. The warnings and annotations of the
	// response count in either case.
	Mutate(ctx context.Context, r AdmissionRequest) (AdmissionResponse, error)

	// Validate lets the plugins reject the final object. The Object of the answer
	// is always nil. The error, and what counts beside it, are as in Mutate.
	Validate(ctx context.Context, r AdmissionRequest) (AdmissionResponse, error)
}

// Operation is what a request does to an object.
type Operation string

const (
	OperationCreate  Operation = "CREATE"
	OperationUpdate  Operation = "UPDATE"
	OperationDelete  Operation = "DELETE"
	OperationConnect Operation = "CONNECT"
)

// AdmissionRequest is one request in the eyes of admission.
type AdmissionRequest struct {
	UID       string // of this review
	Operation Operation
	// Group, Version, Resource and Subresource are those of the path.
	Group       string
	Version     string
	Resource    string
	Subresource string
	// Kind is that of the objects, and KindGroup and KindVersion where it is defined:
	// an Eviction of policy is sent to pods/eviction. An empty KindVersion stands for
	// Group and Version.
	Kind        string
	KindGroup   string
	KindVersion string
	Namespace   string
	Name        string // empty on create with generateName
	User        UserInfo
	// Object is the new object, OldObject the stored one, both JSON in the
	// version of the request; nil where the operation has none. The Object of a
	// connect are its options (PodExecOptions ...).
	Object    []byte
	OldObject []byte
	// Options are the options of the operation (CreateOptions ...), JSON.
	Options []byte
	DryRun  bool
	// OwnerTypes are the resource types of the owners in Object that are served, each
	// once. Whoever admits cannot know them: ownerReferences name kinds.
	OwnerTypes []OwnerType
}

// OwnerType is the resource type that objects of a kind have.
type OwnerType struct {
	APIVersion, Kind string // as in an owner reference
	Resource         string
	Namespaced       bool
}

// AdmissionResponse is what admission has to add.
type AdmissionResponse struct {
	// Object is the changed object; nil when no plugin changed it.
	Object []byte
	// Warnings go to the client as Warning headers.
	Warnings []string
	// AuditAnnotations go to the audit record.
	AuditAnnotations map[string]string
}
