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
	return parameter("pretty", "string", "true indents the answer.")
}

func dryRun() spec.Parameter {
	return parameter("dryRun", "string", "All runs every stage but the last: nothing is kept.")
}

// writing describes the parameters of creates and updates.
func writing() []spec.Parameter {
	return []spec.Parameter{
		dryRun(),
		parameter("fieldManager", "string", "Name of the manager that owns what this request sets. At most 128 printable characters."),
		parameter("fieldValidation", "string", "What happens to unknown and duplicate fields: Ignore drops them, Warn drops them and tells, Strict fails the request."),
	}
}

// patching describes the parameters of patches.
func patching() []spec.Parameter {
	return append(writing(), parameter("force", "boolean", "For apply patches: take fields that other managers own."))
}

// deleting describes the parameters of deletes.
func deleting() []spec.Parameter {
	return []spec.Parameter{
		dryRun(),
		parameter("gracePeriodSeconds", "integer", "How long the object may take to end; 0 is at once. By default as the type has it."),
		parameter("orphanDependents", "boolean", "Older form of propagationPolicy: true leaves dependents alone. Not together with it."),
		parameter("propagationPolicy", "string", "What happens to dependents: Orphan, Background or Foreground."),
	}
}

// selecting describes the parameters that select objects of a collection.
func selecting() []spec.Parameter {
	return []spec.Parameter{
		parameter("continue", "string", "Token of the previous chunk, for the next one."),
		parameter("fieldSelector", "string", "Only objects with these field values."),
		parameter("labelSelector", "string", "Only objects with these labels."),
		parameter("limit", "integer", "At most so many objects in one answer."),
		parameter("resourceVersion", "string", "Version that the answer is to be of; see resourceVersionMatch."),
		parameter("resourceVersionMatch", "string", "How resourceVersion is meant: NotOlderThan or Exact."),
		parameter("timeoutSeconds", "integer", "Ends the request after this time."),
	}
}

// listing describes the parameters of lists and watches.
func listing() []spec.Parameter {
	return append(selecting(),
		parameter("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks, with the version reached."),
		parameter("watch", "boolean", "Stream the changes instead of the list."))
}

// connecting describes the parameters of proxying and streaming subresources.
func connecting(subresource string) []spec.Parameter {
	container := parameter("container", "string", "Name of the container; may be left out where there is one.")
	switch subresource {
	case "exec", "attach":
		streams := []spec.Parameter{
			container,
			parameter("stdin", "boolean", "Whether the standard input is sent."),
			parameter("stdout", "boolean", "Whether the standard output is wanted."),
			parameter("stderr", "boolean", "Whether the standard error is wanted."),
			parameter("tty", "boolean", "Whether it is a terminal."),
		}
		if subresource == "exec" {
			streams = append(streams, parameter("command", "string", "Command and arguments; repeated."))
		}
		return streams
	case "log":
		return []spec.Parameter{
			container,
			parameter("follow", "boolean", "Go on with what is written later."),
			parameter("insecureSkipTLSVerifyBackend", "boolean", "Do not verify the certificate of the node."),
			parameter("limitBytes", "integer", "At most so many bytes."),
			parameter("previous", "boolean", "Of the container before its last restart."),
			parameter("sinceSeconds", "integer", "Only what is younger."),
			parameter("tailLines", "integer", "Only so many lines from the end."),
			parameter("timestamps", "boolean", "Each line with its time."),
		}
	case "portforward":
		return []spec.Parameter{parameter("ports", "integer", "Ports to forward.")}
	case "proxy":
		return []spec.Parameter{parameter("path", "string", "Path of the request that is handed on.")}
	}
	return nil
}
