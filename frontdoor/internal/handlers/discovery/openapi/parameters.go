package openapi

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/services/release"
)

// The parameters of operations (section "Query parameters").

func inPath(name, description string) spec.Parameter {
	p := parameter(name, "string", description)
	p.In, p.Required = "path", true
	return p
}

// parameter describes a query parameter of the given JSON type.
func parameter(name, kind, description string) spec.Parameter {
	return spec.Parameter{
		ParamProps:        spec.ParamProps{Name: name, In: "query", Description: description},
		SimpleSchema:      spec.SimpleSchema{Type: kind},
		CommonValidations: spec.CommonValidations{UniqueItems: true},
	}
}

func inBody(schema *spec.Schema, required bool) spec.Parameter {
	return spec.Parameter{ParamProps: spec.ParamProps{Name: "body", In: "body", Required: required, Schema: schema}}
}

func pretty() spec.Parameter {
	return parameter("pretty", "string", "true indents the response.")
}

func dryRun() spec.Parameter {
	return parameter("dryRun", "string", "All runs every stage of the request without storing the result.")
}

func resourceVersion() spec.Parameter {
	return parameter("resourceVersion", "string", "Version of the data in the response; see resourceVersionMatch.")
}

// writing describes the parameters of creates and updates.
func writing() []spec.Parameter {
	return []spec.Parameter{
		pretty(),
		dryRun(),
		parameter("fieldManager", "string", "Name of the field manager of this request. At most 128 printable characters."),
		parameter("fieldValidation", "string", "How unknown and duplicate fields are handled: Ignore drops them, Warn drops them and sends a warning, Strict fails the request."),
	}
}

// patching describes the parameters of patches.
func patching() []spec.Parameter {
	return append(writing(), parameter("force", "boolean", "For apply patches: take ownership of fields that other field managers own."))
}

// Releases whose documents are the first ones with a parameter of a feature that is off.
var (
	unreadable, _ = release.Of("1.32")
	logStreams, _ = release.Of("1.32")
	shards, _     = release.Of("1.36")
)

// since returns what a release and later ones have, in addition to a list.
func (d *document) since(r release.Release, list []spec.Parameter, added spec.Parameter) []spec.Parameter {
	if d.Release.Before(r) {
		return list
	}
	return append(list, added)
}

// deleting describes the parameters of deletes, and their options in the body.
func (d *document) deleting() []spec.Parameter {
	return d.since(unreadable, []spec.Parameter{
		inBody(d.meta("DeleteOptions"), false),
		dryRun(),
		parameter("gracePeriodSeconds", "integer", "Seconds before the object is deleted; 0 deletes it immediately. The default depends on the type."),
		parameter("orphanDependents", "boolean", "Deprecated form of propagationPolicy: true orphans dependents. Not allowed together with propagationPolicy."),
		parameter("propagationPolicy", "string", "How dependents are deleted: Orphan, Background or Foreground."),
	}, parameter("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", "Has no effect: the deletion of objects that cannot be read is off."))
}

// selecting describes the parameters that select objects of a collection.
func (d *document) selecting() []spec.Parameter {
	return d.since(shards, []spec.Parameter{
		parameter("continue", "string", "Continue token of the previous chunk."),
		parameter("fieldSelector", "string", "Restrict the list of returned objects to those with these field values."),
		parameter("labelSelector", "string", "Restrict the list of returned objects to those with these labels."),
		parameter("limit", "integer", "Maximum number of objects in the response."),
		resourceVersion(),
		parameter("resourceVersionMatch", "string", "How resourceVersion is applied: NotOlderThan or Exact."),
		parameter("sendInitialEvents", "boolean", "Begin a watch with the objects that exist, and a bookmark after the last of them. Requires resourceVersionMatch=NotOlderThan."),
		parameter("timeoutSeconds", "integer", "Timeout of the request."),
	}, parameter("shardSelector", "string", "Has no effect: lists and watches of shards are off."))
}

// listing describes the parameters of lists and watches.
func (d *document) listing() []spec.Parameter {
	return append(d.selecting(),
		parameter("allowWatchBookmarks", "boolean", "Whether a watch may send bookmark events."),
		parameter("watch", "boolean", "Watch for changes to the described resources instead of listing them."))
}

// connecting describes the parameters of proxying and streaming subresources.
func (d *document) connecting(subresource string) []spec.Parameter {
	container := parameter("container", "string", "Name of the container; may be omitted if the pod has only one.")
	switch subresource {
	case "exec", "attach":
		streams := []spec.Parameter{
			container,
			parameter("stdin", "boolean", "Whether to send standard input."),
			parameter("stdout", "boolean", "Whether to receive standard output."),
			parameter("stderr", "boolean", "Whether to receive standard error."),
			parameter("tty", "boolean", "Whether to allocate a terminal."),
		}
		if subresource == "exec" {
			streams = append(streams, parameter("command", "string", "Command and arguments; repeated."))
		}
		return streams
	case "log":
		return d.since(logStreams, []spec.Parameter{
			container,
			parameter("follow", "boolean", "Follow the log stream."),
			parameter("insecureSkipTLSVerifyBackend", "boolean", "Skip verification of the node's serving certificate."),
			parameter("limitBytes", "integer", "Maximum number of bytes."),
			parameter("previous", "boolean", "Return the log of the previous instance of the container."),
			parameter("sinceSeconds", "integer", "Only lines newer than this."),
			parameter("tailLines", "integer", "Number of lines from the end."),
			parameter("timestamps", "boolean", "Prefix each line with a timestamp."),
		}, parameter("stream", "string", "Has no effect: logs have the lines of both streams."))
	case "portforward":
		return []spec.Parameter{parameter("ports", "integer", "Ports to forward.")}
	case "proxy":
		return []spec.Parameter{parameter("path", "string", "Path of the proxied request.")}
	}
	return nil
}

// common takes the parameters that all operations have from them, and returns them. Those of
// the operations and of the path are sorted by name.
func common(operations []*spec.Operation) []spec.Parameter {
	var all []spec.Parameter
	for _, p := range operations[0].Parameters {
		everywhere := !slices.ContainsFunc(operations, func(o *spec.Operation) bool {
			return !slices.ContainsFunc(o.Parameters, func(q spec.Parameter) bool { return identityOf(p) == identityOf(q) })
		})
		if everywhere && p.In != "body" {
			all = append(all, p)
		}
	}
	for _, o := range operations {
		o.Parameters = slices.DeleteFunc(o.Parameters, func(p spec.Parameter) bool {
			return slices.ContainsFunc(all, func(q spec.Parameter) bool { return identityOf(p) == identityOf(q) })
		})
		slices.SortFunc(o.Parameters, byName)
	}
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b spec.Parameter) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.In, b.In))
}

// identity is what distinguishes parameters.
type identity struct {
	name, in, kind, description, schema string
	required                            bool
}

func identityOf(p spec.Parameter) identity {
	i := identity{name: p.Name, in: p.In, kind: p.Type, description: p.Description, required: p.Required}
	if p.Schema != nil {
		i.schema = p.Schema.Ref.String()
	}
	return i
}

// share replaces the parameters of paths and operations by references, and returns what they
// refer to by name. It leaves those that belong to one type, and those by which old clients
// recognize what a server supports.
func share(paths map[string]spec.PathItem) map[string]spec.Parameter {
	shared := map[string]spec.Parameter{}
	replace := func(parameters []spec.Parameter) {
		for i, p := range parameters {
			switch {
			case p.Name == "name", p.Name == "dryRun", p.Name == "fieldValidation":
				continue
			case p.In == "body" && !sharedBody(p.Schema):
				continue
			}
			hash := fnv.New64()
			fmt.Fprint(hash, identityOf(p)) // cannot fail
			name := p.Name + "-" + base64.RawURLEncoding.EncodeToString(hash.Sum(nil))[:8]
			shared[name] = p
			parameters[i] = spec.Parameter{Refable: spec.Refable{Ref: spec.MustCreateRef("#/parameters/" + name)}}
		}
	}
	for _, item := range paths {
		replace(item.Parameters)
		for _, o := range operationsOf(&item.PathItemProps) {
			replace(o.Parameters)
		}
	}
	return shared
}

// sharedBody reports whether a body is one that operations on all types have.
func sharedBody(s *spec.Schema) bool {
	return strings.Contains(s.Ref.String(), ".apimachinery.pkg.")
}
