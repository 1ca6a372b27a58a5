package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Record is an object as stored in etcd: the object, and what readers need without
// parsing it. The store writes records; the store's mirror and the watch hub read them.
type Record struct {
	UID    string
	Labels map[string]string
	Fields map[string]string // selectable fields of the type
	// At is where tree.InsertResourceVersion inserts the resourceVersion into JSON.
	At int
	// JSON is the object in its storage version, without resourceVersion.
	JSON []byte
	// Write is the ID of the write that stored the record. DecodeRecord leaves it
	// out; RecordWrite returns it.
	Write string
	// Trace is services.Change.Trace of the write; empty if it was not sampled.
	Trace []byte
}

// header is the first line of a record's value in etcd.
type header struct {
	UID    string            `json:"uid"`
	Labels map[string]string `json:"labels,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
	At     int               `json:"at"`
	Trace  []byte            `json:"t,omitempty"`
}

// written is the part of the header line that identifies the write. Bulk readers skip
// it.
type written struct {
	Write string `json:"w,omitempty"`
}

var errNoHeader = errors.New("stored value has no header line")

// EncodeRecord returns the record's value in etcd: a header line of JSON, then the
// object.
func EncodeRecord(r Record) []byte {
	h := header{UID: r.UID, Labels: r.Labels, Fields: r.Fields, At: r.At, Trace: r.Trace}
	value, ok := appendHeader(make([]byte, 0, h.size()+len(r.JSON)), &h, r.Write)
	if !ok {
		// Strings and numbers always marshal; JSON escapes line breaks in them.
		head, _ := json.Marshal(struct {
			header
			written
		}{h, written{r.Write}})
		value = append(value[:0], head...)
	}
	value = append(value, '\n')
	return append(value, r.JSON...)
}

// size returns a length that header lines without escapes do not exceed.
func (h *header) size() int {
	const rest = len(`{"uid":"","labels":{},"fields":{},"at":,"w":""}`) + 20 + maxWrite + 1
	n := rest + len(h.UID)
	for _, values := range [...]map[string]string{h.Labels, h.Fields} {
		for name, value := range values {
			n += len(name) + len(value) + len(`"":"",`)
		}
	}
	return n
}

// maxWrite is a length that IDs of writes do not exceed.
const maxWrite = 64

// DecodeRecord decodes a value from etcd. The record's JSON aliases value.
func DecodeRecord(value []byte) (Record, error) {
	head, object, ok := bytes.Cut(value, []byte{'\n'})
	if !ok {
		return Record{}, errNoHeader
	}
	h, err := decodeHeader(head)
	if err != nil {
		return Record{}, fmt.Errorf("header line of a stored value: %w", err)
	}
	if h.At <= 0 || h.At >= len(object) {
		return Record{}, fmt.Errorf("header line of a stored value: offset %d is outside the object", h.At)
	}
	return Record{UID: h.UID, Labels: h.Labels, Fields: h.Fields, At: h.At, JSON: object, Trace: h.Trace}, nil
}

// RecordWrite returns the ID of the write that stored a value in etcd; empty if the
// value has none.
func RecordWrite(value []byte) string {
	head, _, _ := bytes.Cut(value, []byte{'\n'})
	var w written
	if json.Unmarshal(head, &w) != nil {
		return ""
	}
	return w.Write
}
