// Command generate packs the YAML files of the present folder that match patterns into one
// file. See package datafiles.
package main

import (
	"fmt"
	"os"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/datafiles"
)

func main() {
	if err := generate(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(file string, patterns []string) error {
	packed, err := datafiles.Pack(os.DirFS("."), patterns...)
	if err != nil {
		return err
	}
	return os.WriteFile(file, packed, 0o644)
}
