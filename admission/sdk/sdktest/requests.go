// Package sdktest tests admission services: Review calls one as the API does, for unit
// tests of its decisions, and Contract checks what every service must keep to, in this
// process, over gRPC with mutual TLS and as AdmissionReview over HTTPS.
//
// It decides nothing about what a service admits: the author's examples say that. It serves
// section "Admission plugins" of the specification.
package sdktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services"
)

// Create returns the request that creates an object: YAML, JSON or a value that encodes as
// JSON. The request is about the resource type of the object's kind, by the user jane. It
// panics if the object is not one.
func Create(object any) sdk.Request {
	r := about(object)
	r.Operation, r.Object = sdk.Create, encode(object)
	r.Options = []byte(`{"apiVersion":"meta/v1","kind":"CreateOptions"}`)
	return r
}

// Update returns the request that replaces the stored object by a new one.
func Update(stored, object any) sdk.Request {
	r := about(object)
	r.Operation, r.OldObject, r.Object = sdk.Update, encode(stored), encode(object)
	r.Options = []byte(`{"apiVersion":"meta/v1","kind":"UpdateOptions"}`)
	return r
}

// Delete returns the request that deletes the stored object.
func Delete(stored any) sdk.Request {
	r := about(stored)
	r.Operation, r.OldObject = sdk.Delete, encode(stored)
	r.Options = []byte(`{"apiVersion":"meta/v1","kind":"DeleteOptions"}`)
	return r
}

// Connect returns the request that connects to a subresource of an object, such as exec of a
// pod. The options of the connection, such as PodExecOptions, are its object.
func Connect(stored any, subresource string, options any) sdk.Request {
	r := about(stored)
	r.Operation, r.Subresource, r.Object = sdk.Connect, subresource, encode(options)
	return r
}

// DryRun returns the request as a dry run.
func DryRun(r sdk.Request) sdk.Request {
	r.DryRun = true
	return r
}

// about returns the request about an object, without operation.
func about(object any) sdk.Request {
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(encode(object), &o); err != nil || o.Kind == "" || o.APIVersion == "" {
		panic(fmt.Sprintf("sdktest: not an object with apiVersion and kind (%v): %v", err, object))
	}
	group, version, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped {
		group, version = "", o.APIVersion
	}
	return sdk.Request{
		UID: newUID(), Group: group, Version: version, Resource: plural(o.Kind), Kind: o.Kind,
		Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
		User: services.UserInfo{Name: "jane", UID: "1", Groups: []string{services.GroupAuthenticated}},
	}
}

// uids counts the requests of this process.
type uids struct{ last atomic.Int64 }

func (u *uids) next() string { return fmt.Sprintf("review-%d", u.last.Add(1)) }

// newUID returns the next uid.
var newUID = new(uids).next

// plural returns the resource of a kind, as the API names it by rule.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"):
		return name + "es"
	case strings.HasSuffix(name, "y") && !strings.HasSuffix(name, "ay"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// encode returns a value as JSON; text is YAML or JSON already. nil is nil.
func encode(object any) []byte {
	var raw []byte
	var err error
	switch o := object.(type) {
	case nil:
		return nil
	case string:
		raw, err = yaml.YAMLToJSON([]byte(o))
	case []byte:
		raw, err = yaml.YAMLToJSON(o)
	default:
		raw, err = json.Marshal(o)
	}
	if err != nil {
		panic(fmt.Sprintf("sdktest: %v: %v", err, object))
	}
	return raw
}
