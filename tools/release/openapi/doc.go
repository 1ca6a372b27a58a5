// Package openapi holds the OpenAPI definitions of a release's Go types: the program
// generates zz_generated.go, which is not part of the repository.
package openapi
