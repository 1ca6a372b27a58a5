// Package metricnames finds the names of Prometheus metrics in Go source. It knows constants of the same
// file and functions that make metrics of several names; what is known only when the program runs is any
// text. It does not find labels and types. It serves the rule that every metric is listed.
package metricnames

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// anyText and parameter are parts of a pattern: a text that is not known, and the first parameter of
// a function that makes metrics of several names.
const anyText, parameter = `\S+`, "\x00"

// Patterns returns a regular expression for each name of a metric, by what has it: the options of a
// metric, a description, or the call of a function of the same file that makes metrics of several names.
func Patterns(file *ast.File) map[ast.Node]string {
	known, helpers, found := constants(file), map[string]string{}, map[ast.Node]string{}
	inspectMetrics(file, func(n ast.Node, parts []ast.Expr) { found[n] = known.join(parts, "") })
	ast.Inspect(file, func(n ast.Node) bool {
		if name, fn, body := function(n); body != nil && fn.Params.NumFields() > 0 && len(fn.Params.List[0].Names) > 0 {
			inspectMetrics(body, func(_ ast.Node, parts []ast.Expr) {
				if pattern := known.join(parts, fn.Params.List[0].Names[0].Name); strings.Contains(pattern, parameter) {
					helpers[name] = pattern
				}
			})
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
			if name, ok := call.Fun.(*ast.Ident); ok && helpers[name.Name] != "" {
				found[n] = strings.ReplaceAll(helpers[name.Name], parameter, known.pattern(call.Args[0], ""))
			}
		}
		return true
	})
	return found
}

// inspectMetrics calls visit with the parts of each name, between which are underscores.
func inspectMetrics(in ast.Node, visit func(n ast.Node, parts []ast.Expr)) {
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if s, ok := n.Type.(*ast.SelectorExpr); ok && ofPrometheus(s) && strings.HasSuffix(s.Sel.Name, "Opts") {
				parts := map[string]ast.Expr{}
				for _, element := range n.Elts {
					if pair, ok := element.(*ast.KeyValueExpr); ok {
						parts[pair.Key.(*ast.Ident).Name] = pair.Value
					}
				}
				if parts["Name"] != nil {
					visit(n, []ast.Expr{parts["Namespace"], parts["Subsystem"], parts["Name"]})
				}
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && ofPrometheus(s) && s.Sel.Name == "NewDesc" && len(n.Args) > 0 {
				visit(n, n.Args[:1])
			}
		}
		return true
	})
}

func ofPrometheus(s *ast.SelectorExpr) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "prometheus"
}

// function returns the name of a function that a node declares or assigns.
func function(n ast.Node) (name string, fn *ast.FuncType, body *ast.BlockStmt) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Name.Name, n.Type, n.Body
	case *ast.AssignStmt:
		variable, named := n.Lhs[0].(*ast.Ident)
		if literal, ok := n.Rhs[0].(*ast.FuncLit); ok && named {
			return variable.Name, literal.Type, literal.Body
		}
	}
	return "", nil, nil
}

// texts are the constant texts of a file by their names.
type texts map[string]string

func constants(file *ast.File) texts {
	found := texts{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, value := range spec.Values {
				if text, ok := value.(*ast.BasicLit); ok && text.Kind == token.STRING {
					found[spec.Names[i].Name], _ = strconv.Unquote(text.Value)
				}
			}
		}
		return true
	})
	return found
}

func (t texts) join(parts []ast.Expr, param string) string {
	var patterns []string
	for _, part := range parts {
		if part != nil {
			patterns = append(patterns, t.pattern(part, param))
		}
	}
	return strings.Join(patterns, "_")
}

// pattern returns what an expression of texts is.
func (t texts) pattern(e ast.Expr, param string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return regexp.QuoteMeta(text)
	case *ast.BinaryExpr:
		return t.pattern(e.X, param) + t.pattern(e.Y, param)
	case *ast.Ident:
		if param != "" && e.Name == param {
			return parameter
		}
		if text, ok := t[e.Name]; ok {
			return regexp.QuoteMeta(text)
		}
	}
	return anyText
}
