// Package openapi builds OpenAPI documents of the types of a catalogue: one of version 2 for
// all of them, and documents of version 3, each of which describes a group version, a group,
// or another path. It encodes and serves nothing. It serves "Groups and paths" of the
// specification.
package openapi
