package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
)

func stateRules() []Rule {
	return []Rule{
		{"no init functions",
			"create the value where it is needed, or in a package-level var whose initializer has no side effects", checkInit},
		{"no mutable package state",
			"make it a field of the value that owns it, and pass that value", checkPackageState},
		{"no sleeps",
			"wait for the condition itself with a deadline: use a channel, a readiness check or a fake clock", checkSleeps},
		{"no times that jump",
			"keep monotonic.Now, or a time.Time: a Unix time in an atomic jumps when the clock is set", checkJumps},
	}
}

func checkInit(w *Workspace) []Finding {
	return w.eachFile(func(f *File) (found []Finding) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, Finding{w.at(f, fn), "func init"})
			}
		}
		return found
	})
}

func checkSleeps(w *Workspace) (found []Finding) {
	for _, p := range w.Packages {
		for _, f := range p.Files {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && named(s, "time", "Sleep") {
					found = append(found, Finding{w.at(f, s), "time.Sleep"})
				}
				return true
			})
		}
	}
	return found
}

// checkJumps finds Unix times that are stored in an atomic, where they are compared with later ones.
// It sees atomics that their package declares with their type, and times in the argument itself or
// in what declares a local variable there; none that a function returns or that is assigned later.
func checkJumps(w *Workspace) (found []Finding) {
	for _, p := range w.Packages {
		atomics := atomicNames(p)
		for _, f := range p.source() {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				s, ok := call.Fun.(*ast.SelectorExpr)
				if ok && atomics[lastName(s.X)] && storing.MatchString(s.Sel.Name) && slices.ContainsFunc(call.Args, unixTime) {
					found = append(found, Finding{w.at(f, call), s.Sel.Name + " of a Unix time"})
				}
				return true
			})
		}
	}
	return found
}

var storing = regexp.MustCompile("^(Store|Swap|CompareAndSwap)")

// atomicNames returns the names of variables, parameters and fields that are atomics, and that of
// their package.
func atomicNames(p *Package) map[string]bool {
	names := map[string]bool{"atomic": true}
	for _, f := range p.source() {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			var declared []*ast.Ident
			var of ast.Expr
			switch n := n.(type) {
			case *ast.Field:
				declared, of = n.Names, n.Type
			case *ast.ValueSpec:
				declared, of = n.Names, n.Type
			}
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if s, ok := of.(*ast.SelectorExpr); ok && lastName(s.X) == "atomic" {
				for _, name := range declared {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

// lastName returns c of a.b.c, and "" of what has no name.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// unixTime reports whether an expression has a call of Unix, UnixMilli, UnixMicro or UnixNano.
func unixTime(e ast.Expr) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			yes = yes || slices.Contains([]string{"Unix", "UnixMilli", "UnixMicro", "UnixNano"}, n.Sel.Name)
		case *ast.Ident:
			if n.Obj != nil {
				declaration, ok := n.Obj.Decl.(*ast.AssignStmt)
				yes = yes || ok && slices.ContainsFunc(declaration.Rhs, unixTime)
			}
		}
		return true
	})
	return yes
}

func named(s *ast.SelectorExpr, pkg, name string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && s.Sel.Name == name
}

// checkPackageState finds mutable package-level variables: variables that are assigned
// outside their declaration, completely or in part, or whose type is only useful if it
// changes. Read-only tables are allowed.
func checkPackageState(w *Workspace) (found []Finding) {
	for _, p := range w.Packages {
		vars := packageVars(p)
		for _, f := range p.source() {
			for _, d := range f.AST.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
					found = append(found, w.changeableTypes(f, g)...)
				}
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				for _, target := range changed(n) {
					if id := root(target); id != nil && isPackageVar(id, vars) {
						found = append(found, Finding{w.at(f, n), "changes package variable " + id.Name})
					}
				}
				return true
			})
		}
	}
	return found
}

// packageVars returns the names of a package's variables and where they are declared.
func packageVars(p *Package) map[string][]*ast.ValueSpec {
	vars := map[string][]*ast.ValueSpec{}
	for _, f := range p.source() {
		for _, d := range f.AST.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				for _, name := range spec.Names {
					if name.Name == "_" { // an interface guard
						continue
					}
					vars[name.Name] = append(vars[name.Name], spec)
				}
			}
		}
	}
	return vars
}

// isPackageVar reports whether an identifier refers to the package's variable and not to a
// local one: the parser resolves identifiers declared in the same file, but not those
// declared in another file of the package.
func isPackageVar(id *ast.Ident, vars map[string][]*ast.ValueSpec) bool {
	specs, known := vars[id.Name]
	if !known || id.Obj == nil {
		return known
	}
	spec, ok := id.Obj.Decl.(*ast.ValueSpec)
	return ok && slices.Contains(specs, spec)
}

// changed returns the expressions that a statement or call changes.
func changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (f.Name == "delete" || f.Name == "clear") {
			return n.Args[:1]
		}
	}
	return nil
}

// root returns the variable at the root of an assignable expression.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// changeableTypes finds declarations of variables that are only useful if they change: locks,
// atomics, channels and empty maps.
func (w *Workspace) changeableTypes(f *File, g *ast.GenDecl) (found []Finding) {
	for _, s := range g.Specs {
		spec := s.(*ast.ValueSpec)
		for _, e := range append([]ast.Expr{spec.Type}, spec.Values...) {
			if why := changeable(e); why != "" {
				found = append(found, Finding{w.at(f, spec), fmt.Sprintf("package variable %s is %s", spec.Names[0].Name, why)})
			}
		}
	}
	return found
}

func changeable(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ChanType:
		return "a channel"
	case *ast.IndexExpr: // atomic.Pointer[T]
		return changeable(e.X)
	case *ast.CompositeLit:
		return changeable(e.Type)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "make" {
			return "an empty map, slice or channel"
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "atomic" {
			return "an atomic"
		}
		for _, name := range []string{"Mutex", "RWMutex", "Once", "Map", "WaitGroup"} {
			if named(e, "sync", name) {
				return "a sync." + name
			}
		}
	}
	return ""
}
