package discovery

import "k8s.io/kube-openapi/pkg/validation/spec"

// The parameters of operations (section "Query parameters").

func inPath(name, description string) spec.Parameter {
	p := parameter(name, "string", description)
	p.In, p.Required = "path", true
	return p
}

// parameter describes a query parameter of the given JSON type.
func parameter(name, kind, description string) spec.Parameter {
	return spec.Parameter{
		ParamProps:   spec.ParamProps{Name: name, In: "query", Description: description},
		SimpleSchema: spec.SimpleSchema{Type: kind},
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

// writing describes the parameters of creates and updates.
func writing() []spec.Parameter {
	return []spec.Parameter{
		dryRun(),
		parameter("fieldManager", "string", "Name of the field manager of this request. At most 128 printable characters."),
		parameter("fieldValidation", "string", "How unknown and duplicate fields are handled: Ignore drops them, Warn drops them and sends a warning, Strict fails the request."),
	}
}

// patching describes the parameters of patches.
func patching() []spec.Parameter {
	return append(writing(), parameter("force", "boolean", "For apply patches: take ownership of fields that other field managers own."))
}

// deleting describes the parameters of deletes.
func deleting() []spec.Parameter {
	return []spec.Parameter{
		dryRun(),
		parameter("gracePeriodSeconds", "integer", "Seconds before the object is deleted; 0 deletes it immediately. The default depends on the type."),
		parameter("orphanDependents", "boolean", "Deprecated form of propagationPolicy: true orphans dependents. Not allowed together with propagationPolicy."),
		parameter("propagationPolicy", "string", "How dependents are deleted: Orphan, Background or Foreground."),
	}
}

// selecting describes the parameters that select objects of a collection.
func selecting() []spec.Parameter {
	return []spec.Parameter{
		parameter("continue", "string", "Continue token of the previous chunk."),
		parameter("fieldSelector", "string", "Restrict the list of returned objects to those with these field values."),
		parameter("labelSelector", "string", "Restrict the list of returned objects to those with these labels."),
		parameter("limit", "integer", "Maximum number of objects in the response."),
		parameter("resourceVersion", "string", "Version of the data in the response; see resourceVersionMatch."),
		parameter("resourceVersionMatch", "string", "How resourceVersion is applied: NotOlderThan or Exact."),
		parameter("timeoutSeconds", "integer", "Timeout of the request."),
	}
}

// listing describes the parameters of lists and watches.
func listing() []spec.Parameter {
	return append(selecting(),
		parameter("allowWatchBookmarks", "boolean", "Whether a watch may send bookmark events."),
		parameter("sendInitialEvents", "boolean", "Begin a watch with the objects that exist, and a bookmark after the last of them. Requires resourceVersionMatch=NotOlderThan."),
		parameter("watch", "boolean", "Watch for changes to the described resources instead of listing them."))
}

// connecting describes the parameters of proxying and streaming subresources.
func connecting(subresource string) []spec.Parameter {
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
		return []spec.Parameter{
			container,
			parameter("follow", "boolean", "Follow the log stream."),
			parameter("insecureSkipTLSVerifyBackend", "boolean", "Skip verification of the node's serving certificate."),
			parameter("limitBytes", "integer", "Maximum number of bytes."),
			parameter("previous", "boolean", "Return the log of the previous instance of the container."),
			parameter("sinceSeconds", "integer", "Only lines newer than this."),
			parameter("tailLines", "integer", "Number of lines from the end."),
			parameter("timestamps", "boolean", "Prefix each line with a timestamp."),
		}
	case "portforward":
		return []spec.Parameter{parameter("ports", "integer", "Ports to forward.")}
	case "proxy":
		return []spec.Parameter{parameter("path", "string", "Path of the proxied request.")}
	}
	return nil
}
