package kinds

import (
	"errors"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the Go functions that files may refer to, by their names. Each folder with
// such functions has a table of them; package builtin joins the tables.
type Functions struct {
	Checks  map[string]rules.CheckFunc
	Derive  map[string]rules.DeriveFunc
	Prepare map[string]PrepareFunc
	Grace   map[string]GraceFunc
	Cells   map[string]cell.Func
	Rows    map[string]cell.RowFunc
	Convert map[string]ConvertFunc
}

// Join returns the functions of all tables. It returns an error if two have the same name.
func Join(tables ...Functions) (Functions, error) {
	all := Functions{Checks: map[string]rules.CheckFunc{}, Derive: map[string]rules.DeriveFunc{},
		Prepare: map[string]PrepareFunc{}, Grace: map[string]GraceFunc{},
		Cells: map[string]cell.Func{}, Rows: map[string]cell.RowFunc{}, Convert: map[string]ConvertFunc{}}
	for _, f := range tables {
		if err := errors.Join(join(all.Checks, f.Checks), join(all.Derive, f.Derive), join(all.Prepare, f.Prepare), join(all.Grace, f.Grace),
			join(all.Cells, f.Cells), join(all.Rows, f.Rows), join(all.Convert, f.Convert)); err != nil {
			return Functions{}, err
		}
	}
	return all, nil
}

func join[F any](all, more map[string]F) error {
	for name, function := range more {
		if _, taken := all[name]; taken {
			return fmt.Errorf("duplicate function %s", name)
		}
		all[name] = function
	}
	return nil
}

// Resolve looks up the functions that the files refer to. It returns an error for an
// unknown name. It modifies the set, so only package builtin may call it, once.
func (s *Set) Resolve(f Functions) error {
	done := map[*Rules]bool{}
	for name, r := range s.Definitions {
		if done[r] {
			continue
		}
		done[r] = true
		err := r.each(func(r *Rules) (err error) {
			if r.DeriveFuncs, err = named(r.Derive, f.Derive); err == nil {
				r.CheckFuncs, err = named(r.Checks, f.Checks)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, k := range s.Kinds {
		_, err := named(slices.Concat(k.PrepareCreate, k.PrepareUpdate, k.CountChange, k.PrepareDelete), f.Prepare)
		if err == nil && k.GracePeriod != "" {
			_, err = named([]string{k.GracePeriod}, f.Grace)
		}
		if err == nil {
			err = f.findCells(k.Columns)
		}
		if err == nil {
			err = k.resolveConversions(f.Convert)
		}
		if err != nil {
			return fmt.Errorf("%s of %q: %w", k.Resource, k.Group, err)
		}
	}
	s.Functions = f
	return nil
}

// findCells returns an error for a cell or row function that does not exist.
func (f Functions) findCells(columns []Column) error {
	for _, c := range columns {
		name, _ := c.Computed()
		if name != "" && !general[name] && f.Cells[name] == nil {
			return fmt.Errorf("unknown cell %s", name)
		}
		if c.RowConditions != "" && f.Rows[c.RowConditions] == nil {
			return fmt.Errorf("unknown function %s", c.RowConditions)
		}
	}
	return nil
}

func named[F any](names []string, functions map[string]F) ([]F, error) {
	var found []F
	for _, name := range names {
		function, ok := functions[name]
		if !ok {
			return nil, fmt.Errorf("unknown function %s", name)
		}
		found = append(found, function)
	}
	return found, nil
}
