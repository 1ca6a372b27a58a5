package admissionproject

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"
)

//go:embed templates
var templates embed.FS

const (
	// sdkModule is the file of a checkout that shows where the SDK is.
	sdkModule = "admission/sdk/go.mod"
	// unpublished is the version that is replaced.
	unpublished = "v0.0.0"
)

var (
	modulePath = regexp.MustCompile(`^[A-Za-z0-9_~.-]+(/[A-Za-z0-9_~.-]+)*$`)
	release    = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	plainPath  = regexp.MustCompile(`^[^\s"'` + "`" + `()]+$`)
)

// project is a project to write; the templates see its fields.
type project struct {
	Name, Dir, Module, Source, Version string
}

// complete checks the flags and sets the defaults.
func (p *project) complete() error {
	if problems := validation.IsDNS1035Label(p.Name); len(problems) > 0 {
		return usagef("NAME %q: %s", p.Name, problems[0])
	}
	if p.Dir == "" {
		p.Dir = p.Name
	}
	if p.Module == "" {
		p.Module = "example.com/" + p.Name
	}
	if !modulePath.MatchString(p.Module) {
		return usagef("--module: %q is not the path of a Go module", p.Module)
	}
	if p.Version != "" {
		if p.Source != "" {
			return usagef("--source and --sdk-version cannot be used together")
		}
		if !release.MatchString(p.Version) {
			return usagef("--sdk-version: %q is not a version such as v1.2.3", p.Version)
		}
		return nil
	}
	p.Version = unpublished
	return p.findSource()
}

// findSource makes the checkout of Portico an absolute path.
func (p *project) findSource() error {
	if p.Source == "" {
		program, err := os.Executable()
		if err != nil {
			program = "."
		}
		for _, start := range []string{".", filepath.Dir(program)} {
			if dir, found := above(start, sdkModule); found {
				p.Source = dir
				break
			}
		}
	}
	if p.Source == "" {
		return usagef("no checkout of Portico contains the current folder or this program: specify --source or --sdk-version")
	}
	source, err := filepath.Abs(p.Source)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(source, sdkModule)); err != nil {
		return usagef("--source: %s is not a checkout of Portico: %v", source, err)
	}
	if !plainPath.MatchString(source) {
		return usagef("--source: go.mod cannot name the path %q", source)
	}
	p.Source = filepath.ToSlash(source)
	return nil
}

// write writes the project. If it fails, no folder is left.
func (p *project) write() (err error) {
	if err := os.MkdirAll(filepath.Dir(p.Dir), 0o755); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	if err := os.Mkdir(p.Dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s already exists", p.Dir)
		}
		return fmt.Errorf("--dir: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(p.Dir))
		}
	}()
	parsed, err := template.ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return err
	}
	for _, t := range parsed.Templates() {
		var text strings.Builder
		if err := t.Execute(&text, p); err != nil {
			return err
		}
		name := strings.TrimSuffix(t.Name(), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore"
		}
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
