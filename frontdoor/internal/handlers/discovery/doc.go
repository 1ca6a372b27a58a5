// Package discovery publishes the groups, versions and resource types of the catalogue,
// OpenAPI documents generated from them, the release, and the list of paths. It implements
// the layout of these documents and negotiates their form. It defines no types and reads
// no objects. Each document is generated once, on first use. It serves "Groups and paths"
// and "Versioning" of the specification.
package discovery
