package kinds

import "strings"

// Column is one column of a type's Table.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	Priority    int32  `json:"priority,omitempty"`
	// Cell is a path (.spec.size), one of the cells below, or the name of a cell.Func.
	Cell string `json:"cell"`
	// RowConditions names the cell.RowFunc that returns the conditions of the row.
	RowConditions string `json:"rowConditions,omitempty"`
	// Introduced and Removed are the first release with the column and the first without
	// it; "" for a column that all releases have.
	Introduced string `json:"introduced,omitempty"`
	Removed    string `json:"removed,omitempty"`
	// Absent is the value of the cell when the path has no value, for example <none>.
	Absent string `json:"absent,omitempty"`
}

// Cells for all kinds: the name, followed by a path ("count .data"). Package table computes
// them.
const (
	CellAge         = "age"                 // time since the timestamp at the path; without a path: since metadata.creationTimestamp
	CellCount       = "count"               // number of members of the list or map
	CellNames       = "names"               // the name of each member of the list, joined by commas: containers
	CellImages      = "images"              // the image of each member of the list
	CellText        = "text"                // the string, "" for none
	CellJoin        = "join"                // the scalars of the list, joined by commas
	CellReference   = "reference"           // kind.group/name of the reference at the path, <none> for none
	CellAccessModes = "volume-access-modes" // RWO,ROX,RWX, each once
	CellLabels      = "labels"              // the map as k=v,k=v, <none> for none
	CellSelector    = "selector"            // the label selector (or plain map) as a string, <none> for none
	CellBool        = "bool"                // true or false; false for none
	CellYesNo       = "yes-no"              // True or False
	CellNumber      = "number"              // the number, in a column of any type; 0 for none
	CellCustom      = "custom"              // the first result of the JSONPath, as columns of custom types show it
)

// general is the set of these cells.
var general = map[string]bool{CellAge: true, CellCount: true, CellNames: true, CellImages: true, CellText: true,
	CellJoin: true, CellReference: true, CellAccessModes: true, CellLabels: true, CellSelector: true,
	CellBool: true, CellYesNo: true, CellNumber: true, CellCustom: true}

// Computed returns the name and path of a computed cell; name is "" for a plain path.
func (c Column) Computed() (name, path string) {
	if strings.HasPrefix(c.Cell, ".") {
		return "", c.Cell
	}
	name, path, _ = strings.Cut(c.Cell, " ")
	return name, path
}
