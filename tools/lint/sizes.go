package lint

import (
	"fmt"
	"go/ast"
	"slices"
)

const (
	maxFile, p90File = 500, 300
	maxFunc, p90Func = 80, 32
	maxParams        = 4
	// maxPackage is far above what most packages have: several were split where they reached a lower limit, and not
	// where a subject ended.
	maxPackage = 2000
)

func sizeRules() []Rule {
	return []Rule{
		{fmt.Sprintf("files have at most %d lines", maxFile),
			"split it by subject", checkFileSizes},
		{fmt.Sprintf("nine of ten files have at most %d lines", p90File),
			"split the longest files, which are listed here, by subject", checkFileTail},
		{fmt.Sprintf("functions have at most %d lines", maxFunc),
			"extract the steps into functions, or use a table", checkFuncSizes},
		{fmt.Sprintf("nine of ten functions have at most %d lines", p90Func),
			"extract steps of the longest functions, which are listed here", checkFuncTail},
		{fmt.Sprintf("functions have at most %d parameters after ctx", maxParams),
			"combine related parameters into a struct", checkParams},
		{fmt.Sprintf("packages have at most %d lines without tests", maxPackage),
			"split it into two packages by subject", checkPackageSizes},
	}
}

// sized is a file, function or package with its length.
type sized struct {
	where string
	lines int
}

func (w *Workspace) fileSizes() (all []sized) {
	w.eachFile(func(f *File) []Finding {
		all = append(all, sized{f.Path, f.Lines})
		return nil
	})
	return all
}

func (w *Workspace) funcSizes() (all []sized) {
	w.eachFile(func(f *File) []Finding {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				all = append(all, sized{w.at(f, fn) + " " + fn.Name.Name, w.lines(fn)})
			}
		}
		return nil
	})
	return all
}

func checkFileSizes(w *Workspace) []Finding { return longer(w.fileSizes(), maxFile) }
func checkFuncSizes(w *Workspace) []Finding { return longer(w.funcSizes(), maxFunc) }
func checkFileTail(w *Workspace) []Finding  { return tail(w.fileSizes(), p90File) }
func checkFuncTail(w *Workspace) []Finding  { return tail(w.funcSizes(), p90Func) }

func longer(all []sized, limit int) (found []Finding) {
	for _, s := range all {
		if s.lines > limit {
			found = append(found, Finding{s.where, fmt.Sprintf("%d lines", s.lines)})
		}
	}
	return found
}

// tail returns the longest ones if more than a tenth is above the limit.
func tail(all []sized, limit int) []Finding {
	slices.SortFunc(all, func(a, b sized) int { return b.lines - a.lines })
	over := longer(all, limit)
	if len(over)*10 <= len(all) {
		return nil
	}
	return over[:min(len(over), 10)]
}

func checkParams(w *Workspace) []Finding {
	return w.eachFile(func(f *File) (found []Finding) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncType)
			if !ok {
				return true
			}
			if count := paramsAfterContext(fn); count > maxParams {
				found = append(found, Finding{w.at(f, fn), fmt.Sprintf("%d parameters after ctx", count)})
			}
			return true
		})
		return found
	})
}

func paramsAfterContext(fn *ast.FuncType) (count int) {
	for i, field := range fn.Params.List {
		selector, ok := field.Type.(*ast.SelectorExpr)
		if i == 0 && ok && selector.Sel.Name == "Context" {
			continue
		}
		count += max(1, len(field.Names))
	}
	return count
}

func checkPackageSizes(w *Workspace) []Finding {
	var all []sized
	for _, p := range w.Packages {
		total := 0
		for _, f := range p.source() {
			total += f.Lines
		}
		all = append(all, sized{p.Dir, total})
	}
	return longer(all, maxPackage)
}
