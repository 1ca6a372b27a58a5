package kinds

import "strings"

// Column is one column of a type's Table.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	Priority    int32  `json:"priority,omitempty"`
	// Cell is how the value is made: a path (.spec.size), one of the cells below, or the
	// name of a cell.Func.
	Cell string `json:"cell"`
	// RowConditions names the cell.RowFunc for the conditions of the whole row.
	RowConditions string `json:"rowConditions,omitempty"`
	// Absent is shown when the path holds nothing, as in <none>.
	Absent string `json:"absent,omitempty"`
}

// Cells that any kind may have: the name, followed by a path ("count .data"). Package
// table computes them.
const (
	CellAge         = "age"                 // time since the timestamp at the path; without a path: since metadata.creationTimestamp
	CellCount       = "count"               // number of members of the list or map
	CellNames       = "names"               // the name of each member of the list, joined by commas: containers
	CellImages      = "images"              // the image of each member of the list
	CellText        = "text"                // the text as it is, empty without
	CellJoin        = "join"                // the scalars of the list, joined by commas
	CellReference   = "reference"           // kind.group/name of the reference at the path, <none> without
	CellAccessModes = "volume-access-modes" // RWO,ROX,RWX, each once
	CellLabels      = "labels"              // the map as k=v,k=v, <none> without
	CellSelector    = "selector"            // the label selector (or plain map) in its text form, <none> without
	CellBool        = "bool"                // true or false; false without
	CellYesNo       = "yes-no"              // True or False
	CellNumber      = "number"              // the number as it is, in a column of any type; 0 without
)

// general has these cells.
var general = map[string]bool{CellAge: true, CellCount: true, CellNames: true, CellImages: true, CellText: true,
	CellJoin: true, CellReference: true, CellAccessModes: true, CellLabels: true, CellSelector: true,
	CellBool: true, CellYesNo: true, CellNumber: true}

// Computed splits the cell into the name and path of a computed cell; name is
// empty when the cell is a plain path.
func (c Column) Computed() (name, path string) {
	if strings.HasPrefix(c.Cell, ".") {
		return "", c.Cell
	}
	name, path, _ = strings.Cut(c.Cell, " ")
	return name, path
}
