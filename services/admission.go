package services

import (
	"context"
	"errors"
	"time"
)

// Admission reviews every request that creates, changes, deletes or connects, after
// authorization (section "Admission plugins"). It is modeled on AdmissionReview. Only
// the front door may call it.
type Admission interface {
	// Mutate lets the plugins change the object, in their order. The error is a
	// *Status when a plugin rejects the request. The warnings and annotations of the
	// response are valid in either case.
	Mutate(ctx context.Context, r AdmissionRequest) (AdmissionResponse, error)

	// Validate lets the plugins reject the final object. The Object of the response is always nil. The error,
	// the warnings and the annotations are as in Mutate.
	Validate(ctx context.Context, r AdmissionRequest) (AdmissionResponse, error)
}

// AdmissionRefunds is an optional interface of an Admission that charges quotas for what it admits.
type AdmissionRefunds interface {
	// Refund gives back the Charge of a response whose object is not stored and never will be. The caller
	// calls it once, and not if the outcome of its write is unknown. If it fails, or is not called, the
	// charge stays until usage is counted again.
	Refund(ctx context.Context, charge []byte) error
}

// AdmissionOfTrees is an Admission in the process of its caller. Its requests may have a Tree.
type AdmissionOfTrees interface {
	Admission
	// ReviewsTrees does nothing.
	ReviewsTrees()
}

// Operation is what a request does to an object.
type Operation string

const (
	OperationCreate  Operation = "CREATE"
	OperationUpdate  Operation = "UPDATE"
	OperationDelete  Operation = "DELETE"
	OperationConnect Operation = "CONNECT"
)

// AdmissionRequest is one request to review.
type AdmissionRequest struct {
	UID       string // of this review
	Operation Operation
	// Group, Version, Resource and Subresource are those of the path.
	Group       string
	Version     string
	Resource    string
	Subresource string
	// Kind is the kind of the objects; KindGroup and KindVersion are its group version, which may differ from
	// that of the path: an Eviction of policy is sent to pods/eviction. If KindVersion is empty, it is that of
	// the path.
	Kind        string
	KindGroup   string
	KindVersion string
	Namespace   string
	Name        string // empty on create with generateName
	User        UserInfo
	// Object is the new object, OldObject the stored one, both JSON in the version of the request; nil where
	// the operation has none. For a connect, Object has its options (PodExecOptions ...).
	Object    []byte
	OldObject []byte
	// Tree is the decoded new object, only for AdmissionOfTrees. Mutate gets it instead of Object, and may
	// change it; Validate gets it in addition to Object, and must not change it.
	Tree map[string]any
	// Options are the options of the operation (CreateOptions ...), as JSON.
	Options []byte
	DryRun  bool
	// OwnerTypes are the served resource types of the owners in Object, each once.
	// Admission cannot look them up, because ownerReferences name kinds.
	OwnerTypes []OwnerType
	// Served are all types (versions and groups) that serve the same objects, including that of the request.
	// Front doors of earlier releases send none.
	Served []ServedType
	// Converter converts the objects between the types in Served. If it is nil but needed, the error is
	// ErrNoConverter; the call can then be repeated with a converter.
	Converter Converter
	// Bypass names the admission services to skip. Admission checks that the user is permitted to.
	Bypass []string
	// AndValidate lets Mutate also validate an object that it does not change, for a caller that does nothing
	// between the two calls. Admission may ignore it; see Validated.
	AndValidate bool
	// ValidateEarly lets Mutate also validate the object that it returns, changed or not, if validation has no
	// side effects and depends only on the object. The caller applies the rules of the type afterwards, and
	// then calls Validate unless the object is unchanged. Mutate never refuses an object that only Validate
	// would refuse. Admission may ignore it; see Validated.
	ValidateEarly bool
	// Repairs means that the object replaces one whose stored value cannot be read, by a user who may do that. It is
	// admitted as a new one, but is not counted again, and not refused because of others that cannot be read.
	Repairs bool
	// Remembers means that the caller uses Unconcerned of the response. The transport sets it, because within
	// one process computing Unconcerned costs more than the call.
	Remembers bool
}

// ErrNoConverter is the error of a review that needs a Converter, if its request has none. No webhook has been called.
var ErrNoConverter = errors.New("the objects of the request must be converted")

// ServedType is a served resource type, and the kind of its objects. With a subresource, it is the kind of the
// subresource's body, as in AdmissionRequest.
type ServedType struct {
	Group, Version, Resource     string
	KindGroup, KindVersion, Kind string
}

// Converter converts and merges the objects of one request: it knows their types, which
// admission does not.
type Converter interface {
	// Convert returns an object of the request, as JSON, in the version of a type of Served.
	Convert(ctx context.Context, object []byte, to ServedType) ([]byte, error)

	// Merge returns an object of the request with an apply configuration merged into it, by
	// the list types of the object's type. Both are JSON in the version of a type of Served.
	// The error is a BadRequest if the configuration does not fit the type or sets an atomic
	// list or map.
	Merge(ctx context.Context, object, configuration []byte, of ServedType) ([]byte, error)
}

// OwnerType maps a kind to its resource type.
type OwnerType struct {
	APIVersion, Kind string // as in an ownerReference
	Resource         string
	Namespaced       bool
}

// AdmissionResponse is the result of a review.
type AdmissionResponse struct {
	// Object is the changed object; nil if no plugin changed it. For a request with a Tree it may be Tree
	// instead, which shares no memory with other objects.
	Object []byte
	Tree   map[string]any
	// Warnings are sent to the client as Warning headers.
	Warnings []string
	// AuditAnnotations are added to the audit record.
	AuditAnnotations map[string]string
	// Timings are how long admission services took, in the order of the calls.
	Timings []Timing
	// Validated means that Mutate has validated the object, or Object if it is set: Validate must not
	// be called for it.
	Validated bool
	// Charge is what quotas have been charged by Validate, or by Mutate with AndValidate, for AdmissionRefunds; nil
	// for nothing. Only the admission that returns it reads it.
	Charge []byte
	// Unconcerned is set by Mutate, for a request with Remembers, if neither a plugin nor a webhook handles
	// requests of the same operation, group, version, resource, subresource and scope (with or without a
	// namespace), for any object. They need no review until a webhook configuration changes after this
	// revision. 0 means that they need one.
	Unconcerned int64
	// UnconcernedHere is like Unconcerned, for requests in the namespace of this one only. They need no review
	// until a webhook configuration, the namespace or a ResourceQuota in it changes after this revision.
	UnconcernedHere int64
}

// Timing is how long a named step of a request took.
type Timing struct {
	Name string
	Took time.Duration
}

// AdmissionBatch is an optional interface of an admission service: several requests in one call. Requests of a
// batch are independent of each other.
type AdmissionBatch interface {
	// MutateBatch is Mutate for several requests. It returns one result for each, in any
	// order. An error means that none was reviewed; it is ErrNoBatch if batches are not
	// offered.
	MutateBatch(ctx context.Context, requests []AdmissionRequest) ([]AdmissionResult, error)

	// ValidateBatch is Validate for several requests, with results as in MutateBatch.
	ValidateBatch(ctx context.Context, requests []AdmissionRequest) ([]AdmissionResult, error)
}

// ErrNoBatch is the error of a batch to a service that does not offer them.
var ErrNoBatch = errors.New("the service accepts no batches")

// AdmissionResult is the result of one request of a batch.
type AdmissionResult struct {
	UID      string // of the request
	Response AdmissionResponse
	Err      error // as of Mutate and Validate
}
