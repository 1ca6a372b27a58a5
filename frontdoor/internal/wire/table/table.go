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

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Definition is the columns of a type, ready for making rows. It is safe for
// concurrent use.
type Definition struct {
	columns []column
	// conditions tells what a client may do with a row as a whole; nil when that is
	// nothing for all rows.
	conditions func(*cell.Object) string
	names      vocabulary.Vocabulary
	objects    sync.Pool // of *row
}

type column struct {
	kinds.Column
	// value finds the value to show: nil, a string, an int64, a json.RawMessage
	// or the time.Time since when.
	value func(*cell.Object) any
}

// Define returns the definition of a type's columns; none are the default two,
// Name and Created At.
func Define(columns []kinds.Column, names vocabulary.Vocabulary) *Definition {
	d := &Definition{names: names}
	cells, rows := builtin.Cells()
	if len(columns) == 0 {
		d.columns = defaultColumns()
		return d
	}
	for _, c := range columns {
		d.columns = append(d.columns, column{c, finder(c, cells)})
		if conditions, ok := rows[c.RowConditions]; ok {
			d.conditions = conditions
		}
	}
	return d
}

func defaultColumns() []column {
	name := kinds.Column{Name: "Name", Type: "string", Format: "name", Description: "Name of the object, unique within its scope.", Cell: ".metadata.name"}
	created := kinds.Column{Name: "Created At", Type: "date", Description: "Time of the object's creation, set by the server."}
	return []column{
		{name, finder(name, nil)},
		{created, func(o *cell.Object) any { return o.Metadata.Get("creationTimestamp").String() }},
	}
}

// finder returns how the value of a column is found. A column that names no
// known cell stays empty; those of built-in kinds are checked when they are read.
func finder(c kinds.Column, cells map[string]cell.Func) func(*cell.Object) any {
	name, path := c.Computed()
	if name == "" {
		at := parsePath(path)
		return func(o *cell.Object) any { return shown(c, at.find(o)) }
	}
	if name == kinds.CellAge && path == "" {
		return func(o *cell.Object) any { return cell.Since(o.Metadata.Get("creationTimestamp")) }
	}
	if general, ok := generalCells[name]; ok {
		at := parsePath(path)
		return func(o *cell.Object) any { return orAbsent(c, general(at.find(o))) }
	}
	if special, ok := cells[name]; ok {
		return func(o *cell.Object) any { return orAbsent(c, special(o)) }
	}
	return func(*cell.Object) any { return nil }
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
	o, ok := d.objects.Get().(*row)
	if !ok {
		o = &row{Object: cell.Object{Names: d.names}}
	}
	defer d.objects.Put(o)
	o.Open(objectJSON)
	c := Cells{text: o.text[:0]}
	for i := range d.columns {
		if i > 0 {
			c.text = append(c.text, ',')
		}
		c.add(d.columns[i].value(&o.Object))
	}
	o.text = c.text
	c.text = bytes.Clone(c.text)
	if d.conditions != nil {
		c.Conditions = d.conditions(&o.Object)
	}
	if metadata := o.Top.Get("metadata"); metadata != nil {
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

// row is an object with what its last row was written into.
type row struct {
	cell.Object
	text []byte
}
