// Command conformance checks a cluster API service, from outside, against its
// specification. See README.md.
package main

import (
	_ "github.com/portico-platform/portico/test/conformance/suite/checks"
	"github.com/portico-platform/portico/test/conformance/suite/harness"
)

func main() { harness.Run() }
