// Program release generates what the front door knows about the types of a Kubernetes
// release: an OpenAPI document in Protobuf, like those that releases publish, and the
// fields that belong to feature gates. Its input are the Go types of the module k8s.io/api
// in the version of go.mod, with their markers and comments, and a file with what these do
// not say:
//
//	go run . 1.36.yaml ../../frontdoor/internal/typesystem
//
// To describe another release, change the version in go.mod and write its file.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/portico-platform/portico/tools/release/manifest"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("use: go run . <release>.yaml <folder of package typesystem>")
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// generate generates the definitions of the Go types as Go code, and then runs the program
// of package emit, which is compiled with them.
func generate(file, folder string) error {
	m, err := manifest.Read(file)
	if err != nil {
		return err
	}
	header, err := os.CreateTemp("", "header")
	if err != nil {
		return err
	}
	defer os.Remove(header.Name())
	report := filepath.Join(os.TempDir(), filepath.Base(header.Name())+".report")
	defer os.Remove(report)
	err = run(append([]string{"tool", "openapi-gen", "--output-dir", "openapi", "--output-pkg", manifest.Module + "/openapi",
		"--output-file", "zz_generated.go", "--go-header-file", header.Name(), "--report-filename", report}, append(m.All(), m.Shared...)...)...)
	if err != nil {
		return fmt.Errorf("generating definitions: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "catalogue", "published", "releases"), 0o755); err != nil {
		return err
	}
	return run("run", "-tags", "generated", "./emit", file, folder)
}

func run(args ...string) error {
	c := exec.Command("go", args...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}
