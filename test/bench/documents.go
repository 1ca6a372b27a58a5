package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/services/vocabulary"
)

// The paths of definitions and of documents about all types.
const documentsIndex, wholeDocument = "/openapi/v3", "/openapi/v2"

var (
	definitionsVersion = vocabulary.K8s().Group("apiextensions.") + "/v1"
	customDefinitions  = "/apis/" + definitionsVersion + "/customresourcedefinitions"
)

// changedDefinitions is how often a definition changes in a measurement of documents, and definitionFields how many
// fields each of its versions has.
const changedDefinitions, definitionFields = 5, 60

// documents reads a document after each of several changes of one definition, on another server of the same kind that has
// many definitions and nothing else. The changes are not measured; the first document before them is not either.
func documents(path string) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		return m.apart(func(other *target) error {
			if err := other.launch(); err != nil {
				return err
			}
			if err := other.await(ctx); err != nil {
				return err
			}
			if err := other.define(ctx, m.settings.definitions); err != nil {
				return err
			}
			beside := &measurement{target: other, settings: m.settings}
			err := beside.documentsAfterChanges(ctx, path)
			m.result = beside.result
			return err
		})
	}
}

// define creates definitions, and waits until the last one is served and in the documents.
func (t *target) define(ctx context.Context, n int) error {
	all, err := t.connect(ctx, 4)
	if err != nil {
		return err
	}
	var created atomic.Int64
	if _, err := all.Run(ctx, load.Times(n), func(_ int, c *wire.Conn) (int64, error) {
		body, err := definition(int(created.Add(1) - 1))
		if err != nil {
			return 0, err
		}
		return 0, ensure(c, customDefinitions, body)
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	return t.answers(ctx, 20*time.Millisecond, fmt.Sprintf("/apis/g%d.example.com/v1/things", n-1), documentsIndex, wholeDocument)
}

// definition returns a definition with two versions. Its number is in the name of its group.
func definition(i int) ([]byte, error) {
	fields := map[string]any{}
	for j := range definitionFields {
		fields[fmt.Sprintf("field%02d", j)] = map[string]any{"type": "string", "description": fmt.Sprintf("Field %d of thing %d, with a text for those who read it.", j, i)}
	}
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": "Things.", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": fields}}}}
	version := func(name string) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": name == "v1", "schema": schema}
	}
	group := fmt.Sprintf("g%d.example.com", i)
	return json.Marshal(map[string]any{"apiVersion": definitionsVersion, "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things." + group},
		"spec": map[string]any{"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "things", "kind": "Thing"}, "versions": []any{version("v1"), version("v1beta1")}}})
}

// documentsAfterChanges measures the documents that are requested after changes of the first definition.
func (m *measurement) documentsAfterChanges(ctx context.Context, path string) error {
	c, err := m.dial(ctx)
	if err != nil {
		return err
	}
	if _, err := read(c, path); err != nil {
		return err
	}
	before, err := read(c, documentsIndex)
	if err != nil {
		return err
	}
	return m.measure(ctx, func() (s load.Samples, err error) {
		for i := range changedDefinitions {
			patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"Things, change %d."}]`, i)
			if _, err := c.Do(wire.Request{Method: http.MethodPatch, Path: customDefinitions + "/things.g0.example.com", Type: "application/json-patch+json", Body: []byte(patch)}, nil); err != nil {
				return s, err
			}
			for end := time.Now().Add(waitTimeout); ; { // until the change is in the documents
				began := time.Now()
				size, err := c.Do(wire.Request{Method: http.MethodGet, Path: path}, nil)
				if err != nil {
					return s, err
				}
				s.Operations, s.Bytes, s.Latencies = s.Operations+1, s.Bytes+size, append(s.Latencies, time.Since(began))
				now, err := read(c, documentsIndex)
				if err != nil {
					return s, err
				}
				if !bytes.Equal(now, before) {
					before = now
					break
				}
				if time.Now().After(end) {
					return s, fmt.Errorf("a change of a definition is not in %s within %v", documentsIndex, waitTimeout)
				}
				if err := load.Pause(ctx, 20*time.Millisecond); err != nil {
					return s, err
				}
			}
		}
		return s, nil
	})
}
