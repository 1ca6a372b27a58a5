package request

import "github.com/portico-platform/portico/services"

// AcrossPermitted reports whether the request lists or watches a type in all namespaces with
// permitted=true: it then reads those namespaces that its caller may read, instead of being
// refused.
func (r *Request) AcrossPermitted() bool {
	return r.asksPermitted() && (r.Verb == "list" || r.Verb == "watch") && r.Type.Namespaced &&
		r.Namespace == "" && r.Name == "" && r.Subresource == nil
}

// asksPermitted reports whether a request for a resource of this suite has permitted=true.
func (r *Request) asksPermitted() bool {
	return r.Plain == nil && r.Type != nil && BoolOption(r.Query, "permitted")
}

// CheckPermitted returns BadRequest (400) for permitted=true where it has no meaning.
func (r *Request) CheckPermitted() error {
	if !r.asksPermitted() || r.AcrossPermitted() {
		return nil
	}
	if !r.Type.Namespaced {
		return services.BadRequest("permitted: Invalid value: \"true\": %s are not namespaced", r.Type.Key)
	}
	return services.BadRequest("permitted: Invalid value: \"true\": may only be set for a list or watch across all namespaces")
}
