package lint

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

func errorRules() []Rule {
	return []Rule{{"errors are compared with errors.Is and errors.As, and wrapped with %w",
		"an error may be wrapped: use errors.Is, errors.As or %w, or justify the exception on the line with //nolint:errorlint", checkErrors}}
}

// checkErrors treats every variable called err as an error.
func checkErrors(w *Workspace) []Finding {
	return w.eachFile(func(f *File) (found []Finding) {
		excused := map[int]bool{}
		for _, group := range f.AST.Comments {
			if strings.Contains(group.Text()+group.List[0].Text, "nolint:errorlint") {
				excused[w.files.Position(group.Pos()).Line] = true
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if what := mishandled(n); what != "" && !excused[w.files.Position(n.Pos()).Line] {
				found = append(found, Finding{w.at(f, n), what})
			}
			return true
		})
		return found
	})
}

// mishandled returns the mistake in the handling of a possibly wrapped error, or "".
func mishandled(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		compares := n.Op == token.EQL || n.Op == token.NEQ
		if compares && (isIdent(n.X, "err") && !isIdent(n.Y, "nil") || isIdent(n.Y, "err") && !isIdent(n.X, "nil")) {
			return "compares err"
		}
	case *ast.TypeAssertExpr:
		if isIdent(n.X, "err") {
			return "asserts the type of err"
		}
	case *ast.SwitchStmt:
		if n.Tag != nil && isIdent(n.Tag, "err") {
			return "switches on err"
		}
	case *ast.CallExpr:
		return unwrapped(n)
	}
	return ""
}

// unwrapped returns the mistake in a call of fmt.Errorf, or "".
func unwrapped(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isIdent(f.X, "fmt") || f.Sel.Name != "Errorf" || len(call.Args) < 2 || !isIdent(call.Args[len(call.Args)-1], "err") {
		return ""
	}
	format, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	if text, err := strconv.Unquote(format.Value); err != nil || strings.Contains(text, "%w") {
		return ""
	}
	return "creates an error from err without wrapping it"
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
