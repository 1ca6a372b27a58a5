// Package discovery publishes what there is: the groups, versions and resource
// types of the catalogue, the OpenAPI documents made from them, the release and
// the list of paths. It decides how these documents look and in which form a
// client gets them; it knows no types of its own and never looks at objects. All
// documents are made once, at the first request for them. It serves "Groups and
// paths" and "Versioning" of the specification.
package discovery
