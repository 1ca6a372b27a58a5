// Package table makes the cells of a Table (section "Table representation" of
// the specification): what people want to see of an object on one line. Which
// columns a type has is the catalogue's decision; how their values are found is
// decided here. It reads objects' JSON in place, and knows neither requests nor
// the envelope around the rows.
package table

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/wire/rawjson"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Definition is the columns of a type, ready for making rows. It is safe for
// concurrent use.
type Definition struct {
	columns []column
	// conditions tells what a client may do with a row as a whole; nil when that is
	// nothing for all rows.
	conditions func(*object) string
	names      vocabulary.Vocabulary
	objects    sync.Pool // of *object
}

type column struct {
	kinds.Column
	// value finds the value to show: nil, a string, an int64, a json.RawMessage
	// or the time.Time since when.
	value func(*object) any
}

// Define returns the definition of a type's columns; none are the default two,
// Name and Created At.
func Define(columns []kinds.Column, names vocabulary.Vocabulary) *Definition {
	d := &Definition{names: names}
	if len(columns) == 0 {
		d.columns = defaultColumns()
		return d
	}
	for _, c := range columns {
		d.columns = append(d.columns, column{c, finder(c)})
		if conditions, ok := rowConditions[c.Cell]; ok {
			d.conditions = conditions
		}
	}
	return d
}

func defaultColumns() []column {
	name := kinds.Column{Name: "Name", Type: "string", Format: "name", Description: "Name of the object, unique within its scope.", Cell: ".metadata.name"}
	created := kinds.Column{Name: "Created At", Type: "date", Description: "Time of the object's creation, set by the server."}
	return []column{
		{name, finder(name)},
		{created, func(o *object) any { return o.metadata.Get("creationTimestamp").String() }},
	}
}

// finder returns how the value of a column is found. A column that names no
// known cell stays empty: a test of the catalogue's columns finds it.
func finder(c kinds.Column) func(*object) any {
	name, path := c.Computed()
	if name == "" {
		at := parsePath(path)
		return func(o *object) any { return shown(c, at.find(o)) }
	}
	if name == kinds.CellAge && path == "" {
		return func(o *object) any { return since(o.metadata.Get("creationTimestamp")) }
	}
	if general, ok := generalCells[name]; ok {
		at := parsePath(path)
		return func(o *object) any { return orAbsent(c, general(at.find(o))) }
	}
	if special, ok := specialCells[name]; ok {
		return func(o *object) any { return orAbsent(c, special(o)) }
	}
	return func(*object) any { return nil }
}

// Known reports whether the cell of a column can be found.
func Known(c kinds.Column) bool {
	name, _ := c.Computed()
	return name == "" || generalCells[name] != nil || specialCells[name] != nil
}

// Columns returns the column definitions, JSON.
func (d *Definition) Columns() []byte {
	definitions := make([]metav1.TableColumnDefinition, len(d.columns))
	for i, c := range d.columns {
		definitions[i] = metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority}
	}
	encoded, err := json.Marshal(definitions)
	if err != nil {
		panic(err) // plain strings and numbers always encode
	}
	return encoded
}

// Cells are the cells of one row, with gaps where an age goes, so that they stay
// right while time passes.
type Cells struct {
	// MetadataStart and MetadataEnd are where the object's metadata stands in its
	// JSON; both are 0 when it has none.
	MetadataStart, MetadataEnd int
	// Conditions are those of the row, a JSON list; "" when there are none.
	Conditions string

	text []byte
	ages []age
}

type age struct {
	offset int
	since  time.Time
}

// Cells returns the row of an object's JSON.
func (d *Definition) Cells(objectJSON []byte) Cells {
	o, ok := d.objects.Get().(*object)
	if !ok {
		o = &object{names: d.names}
	}
	defer d.objects.Put(o)
	o.open(objectJSON)
	c := Cells{text: o.text[:0]}
	for i := range d.columns {
		if i > 0 {
			c.text = append(c.text, ',')
		}
		c.add(d.columns[i].value(o))
	}
	o.text = c.text
	c.text = bytes.Clone(c.text)
	if d.conditions != nil {
		c.Conditions = d.conditions(o)
	}
	if metadata := o.top.Get("metadata"); metadata != nil {
		c.MetadataStart = o.Offset(metadata)
		c.MetadataEnd = c.MetadataStart + len(metadata)
	}
	return c
}

func (c *Cells) add(value any) {
	switch v := value.(type) {
	case string:
		c.text = appendString(c.text, v)
	case int64:
		c.text = strconv.AppendInt(c.text, v, 10)
	case json.RawMessage:
		c.text = append(c.text, v...)
	case time.Time:
		c.text = append(c.text, '"', '"')
		c.ages = append(c.ages, age{len(c.text) - 1, v})
	default:
		c.text = append(c.text, "null"...)
	}
}

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(dst, `""`...)
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// Append appends the cells as they look now: JSON values joined by commas.
func (c Cells) Append(dst []byte, now time.Time) []byte {
	from := 0
	for _, a := range c.ages {
		dst = append(dst, c.text[from:a.offset]...)
		dst = append(dst, duration.HumanDuration(now.Sub(a.since))...)
		from = a.offset
	}
	return append(dst, c.text[from:]...)
}

// Size is about how much memory the cells take.
func (c Cells) Size() int { return cap(c.text) + 32*cap(c.ages) + 64 }

// object is an object with its parts at hand, all found in one scan.
type object struct {
	rawjson.Value
	top, metadata, spec, status rawjson.Index

	pod   *containers // of a pod, once somebody asked
	names vocabulary.Vocabulary
	text  []byte // of the last row
}

func (o *object) open(objectJSON []byte) {
	o.Value, o.pod = objectJSON, nil
	o.metadata, o.spec, o.status = o.metadata[:0], o.spec[:0], o.status[:0]
	o.top = o.Value.Index(o.top, o.part)
}

// part returns where the members of a part are kept.
func (o *object) part(key rawjson.Value) *rawjson.Index {
	switch string(key) {
	case `"metadata"`:
		return &o.metadata
	case `"spec"`:
		return &o.spec
	case `"status"`:
		return &o.status
	}
	return nil
}

// Get returns the value that a path of member names leads to.
func (o *object) Get(name string, path ...string) rawjson.Value {
	return o.top.Get(name, path...)
}
