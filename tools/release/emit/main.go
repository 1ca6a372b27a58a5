//go:build generated

// Program emit writes the data of a release: see the program in the folder above.
package main

import (
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/portico-platform/portico/tools/release/manifest"
)

func main() {
	log.SetFlags(0)
	file, folder := os.Args[1], os.Args[2]
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	m, err := manifest.Read(file)
	if err != nil {
		log.Fatal(err)
	}
	types, gated, err := parse(m)
	if err != nil {
		log.Fatal(err)
	}
	definitions, err := readDefinitions(types, m.Optional)
	if err != nil {
		log.Fatal(err)
	}
	if err := writeDocument(filepath.Join(folder, "catalogue", "published", "releases", name+".pb.gz"), definitions, types); err != nil {
		log.Fatal(err)
	}
	if err := writeFields(filepath.Join(folder, "features", name+".json"), definitions, types, gated); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: %d types, %d definitions", name, len(types), len(definitions))
}
