// Package table computes the cells of Tables (section "Table representation" of the
// specification), the values that users see in one line per object. The catalogue defines
// the columns of a type; this package computes their values from the JSON of objects. It
// does not process requests or the Table around the rows.
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

// Definition holds the compiled columns of a type. It is safe for concurrent use.
type Definition struct {
	columns []column
	// conditions returns the conditions of a row; nil if the type has none.
	conditions func(*cell.Object) string
	names      vocabulary.Vocabulary
	objects    sync.Pool // of *row
}

type column struct {
	kinds.Column
	// value returns the value of a cell, see cell.Func.
	value func(*cell.Object) any
}

// Define compiles the columns of a type. Without columns, the two default ones are used,
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

// finder returns the function that computes the value of a column. The cell of a column
// with an unknown function stays empty; package kinds validates those of built-in types.
func finder(c kinds.Column, cells map[string]cell.Func) func(*cell.Object) any {
	name, path := c.Computed()
	if name == "" {
		at := parsePath(path)
		return func(o *cell.Object) any { return shown(c, at.find(o)) }
	}
	if name == kinds.CellCustom {
		return customCell(c.Type, path)
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

// Columns returns the column definitions as JSON.
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

// Cells are the cells of one row. Ages are inserted when the cells are written, so that
// cached cells stay correct.
type Cells struct {
	// MetadataStart and MetadataEnd are the offsets of the metadata in the object's JSON;
	// both are 0 if there is none.
	MetadataStart, MetadataEnd int
	// Conditions are the conditions of the row as a JSON list; "" for none.
	Conditions string

	text []byte
	ages []age
}

type age struct {
	offset int
	since  time.Time
}

// Cells computes the cells of an object's JSON.
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

// Append appends the cells with ages at the time now: JSON values separated by commas.
func (c Cells) Append(dst []byte, now time.Time) []byte {
	from := 0
	for _, a := range c.ages {
		dst = append(dst, c.text[from:a.offset]...)
		dst = append(dst, duration.HumanDuration(now.Sub(a.since))...)
		from = a.offset
	}
	return append(dst, c.text[from:]...)
}

// Size returns the approximate memory of the cells in bytes.
func (c Cells) Size() int { return cap(c.text) + 32*cap(c.ages) + 64 }

// row is a reusable object with the buffer for its cells.
type row struct {
	cell.Object
	text []byte
}
