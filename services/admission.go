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

	// Validate lets the plugins reject the final object. The Object of the response is
	// always nil. The error, and the warnings and annotations beside it, are as in Mutate.
	Validate(ctx context.Context, r AdmissionRequest) (AdmissionResponse, error)
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
	// Kind is that of the objects, and KindGroup and KindVersion where it is defined:
	// an Eviction of policy is sent to pods/eviction. If KindVersion is empty, the kind is
	// of Group and Version.
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
	// Tree is the decoded new object, only for AdmissionOfTrees. Mutate gets it instead of
	// Object, and may change it; Validate gets it beside Object, and only reads it.
	Tree map[string]any
	// Options are the options of the operation (CreateOptions ...), as JSON.
	Options []byte
	DryRun  bool
	// OwnerTypes are the served resource types of the owners in Object, each once.
	// Admission cannot look them up, because ownerReferences name kinds.
	OwnerTypes []OwnerType
	// Served are the types whose paths show the same objects, in all versions and groups,
	// that of the request among them. Front doors of earlier releases send none.
	Served []ServedType
	// Converter converts the objects between the types in Served. If it is nil and one
	// has to be converted or merged, the error is ErrNoConverter; the call can then be repeated with a
	// converter.
	Converter Converter
	// Bypass names the admission services that the caller asks to skip. Admission checks
	// that the user may.
	Bypass []string
	// AndValidate lets Mutate also validate an object that it does not change, for a caller
	// that has nothing else to do in between. Admission may ignore it; see Validated.
	AndValidate bool
	// ValidateEarly lets Mutate also validate the object that it returns, changed or not, if that
	// has no effect and nothing else than the object counts: for a caller that applies the rules of the type
	// afterwards, and then calls Validate unless the object is still the one that was validated.
	// Mutate never refuses what only Validate would. Admission may ignore it; see Validated.
	ValidateEarly bool
	// Remembers means that the caller uses Unconcerned of the response. The transport sets it,
	// since a call in one process costs less than finding that out.
	Remembers bool
}

// ErrNoConverter is the error of a review that needs the Converter of its request, which
// has none. No webhook has been called.
var ErrNoConverter = errors.New("the objects of the request have to be converted")

// ServedType is a served resource type, and the kind of its objects. With a subresource, it is
// that of the subresource's body, as in AdmissionRequest.
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
	// Object is the changed object; nil if no plugin changed it. For a request with a Tree it
	// may be the Tree of the response instead, which shares nothing with any other object.
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
	// Unconcerned is set by Mutate of a request that Remembers when neither a plugin nor a
	// webhook is concerned with requests of the same operation, group, version, resource,
	// subresource and scope (with or without a namespace), whatever their objects: they need
	// no review for as long as no configuration of webhooks has changed after this revision.
	// 0 means that they do.
	Unconcerned int64
	// UnconcernedHere is like Unconcerned, for requests in the namespace of this one only. They
	// need no review for as long as neither a configuration of webhooks nor the namespace
	// nor a ResourceQuota in it has changed after this revision.
	UnconcernedHere int64
}

// Timing is how long a named step of a request took.
type Timing struct {
	Name string
	Took time.Duration
}

// AdmissionBatch is what an admission service may offer beside Admission: several requests
// in one call. Requests of a batch are independent of each other.
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
