package delegate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/reload"
)

// Parse parses a stored AdmissionService. An invalid one is not called, and its status
// says why.
func (g *Registry) Parse(o services.Object) (*Declared, error) {
	var stored struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		return nil, err
	}
	d := &Declared{Name: o.Key.Name, UID: o.UID, Generation: stored.Metadata.Generation}
	if err := d.complete(g.config, stored.Spec); err != nil {
		d.Problem = err.Error()
	}
	return d, nil
}

// complete sets the spec of a declaration. The error has all problems.
func (d *Declared) complete(c Config, spec map[string]any) error {
	if spec == nil {
		return errors.New("spec: required value")
	}
	admissionservice.Complete(spec)
	var err error
	if d.Spec, err = admissionservice.Decode(spec); err != nil {
		return err
	}
	var problems []string
	for _, p := range d.Spec.Check(c.Expressions.CheckMatch) {
		problems = append(problems, p.String())
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// file is --admission-services-file: AdmissionServices as YAML documents.
type file struct{ content *reload.Files[[]*Declared] }

func openFile(c Config, refused prometheus.Counter) (*file, error) {
	opened := false
	content, err := reload.Open(reload.Config[[]*Declared]{What: "admission services", Paths: []string{c.File}, Log: c.Log,
		Parse: func(content [][]byte) ([]*Declared, error) {
			services, err := parseFile(c, content[0])
			if err != nil && opened {
				refused.Inc()
			}
			return services, err
		}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	opened = true
	return &file{content}, nil
}

// services returns the services of the newest valid content.
func (f *file) services() []*Declared { return f.content.Get() }

// parseFile returns the services in a file. The error names the document and the fields.
func parseFile(c Config, content []byte) (all []*Declared, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	names := map[string]bool{}
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		d, err := parseDocument(c, document)
		if err == nil && names[d.Name] {
			err = fmt.Errorf("metadata.name: duplicate value %q", d.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		names[d.Name] = true
		all = append(all, d)
	}
}

func parseDocument(c Config, document []byte) (*Declared, error) {
	var given struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(document, &given); err != nil {
		return nil, err
	}
	if want := admissionservice.Group + "/" + admissionservice.Version; given.APIVersion != want || given.Kind != admissionservice.Kind {
		return nil, fmt.Errorf("it is %s %s, not %s %s", given.APIVersion, given.Kind, want, admissionservice.Kind)
	}
	if len(given.Spec) == 0 {
		return nil, errors.New("spec: required value")
	}
	for _, problem := range validation.IsDNS1123Subdomain(given.Metadata.Name) {
		return nil, fmt.Errorf("metadata.name: invalid value %q: %s", given.Metadata.Name, problem)
	}
	var known admissionservice.Spec
	strict, err := kjson.UnmarshalStrict(given.Spec, &known, kjson.DisallowUnknownFields)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(given.Spec, &spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	d := &Declared{Name: given.Metadata.Name}
	return d, d.complete(c, spec)
}
