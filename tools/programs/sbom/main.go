// Command sbom prints the bill of materials of a Go program in the form of CycloneDX: the
// modules that the linker has recorded in it. The same program gives the same bytes.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	name := flag.String("name", "", "name of the image")
	version := flag.String("version", "", "its version")
	flag.Parse()
	if flag.NArg() != 1 || *name == "" || *version == "" {
		fmt.Fprintln(os.Stderr, "usage: sbom -name=NAME -version=VERSION PROGRAM")
		os.Exit(2)
	}
	bill, err := describe(flag.Arg(0), *name, *version)
	if err == nil {
		err = cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// describe returns the bill of a program. It has no time and no serial number.
func describe(program, name, version string) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	sum, err := hashOf(program)
	if err != nil {
		return nil, err
	}
	image := cdx.Component{BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: version,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}}
	// The program's own module is of the version of the image, and so are its others.
	components := []cdx.Component{module(debug.Module{Path: info.Main.Path, Version: info.Main.Version, Sum: info.Main.Sum}, version)}
	for _, m := range info.Deps {
		used := *m
		if m.Replace != nil && !local(m.Replace) {
			used = *m.Replace
		} else if m.Replace != nil {
			used.Version, used.Sum = "", ""
		}
		components = append(components, module(used, version))
	}
	components = append(components, module(debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}, version))
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Component: &image}
	bill.Components = &components
	bill.Dependencies = &[]cdx.Dependency{{Ref: name, Dependencies: &refs}}
	return bill, nil
}

// local reports whether a module is replaced by a folder of the same source.
func local(m *debug.Module) bool {
	return strings.HasPrefix(m.Path, ".") || strings.HasPrefix(m.Path, "/")
}

// module returns a component; modules of the source itself, which have no version of their
// own, have that of the image.
func module(m debug.Module, own string) cdx.Component {
	if m.Version == "" || m.Version == "(devel)" {
		m.Version = own
	}
	purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := cdx.Component{BOMRef: purl, PackageURL: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version}
	// The checksum database's hash of the module, which is a SHA-256.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}

func hashOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
