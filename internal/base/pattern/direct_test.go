package pattern_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// direct are the functions that match or compile a pattern without a bound, by the place of
// the pattern among their arguments.
var direct = map[string]int{
	"regexp.Compile": 0, "regexp.MustCompile": 0, "regexp.CompilePOSIX": 0, "regexp.MustCompilePOSIX": 0,
	"regexp.Match": 0, "regexp.MatchString": 0, "regexp.MatchReader": 0,
	"syntax.Parse": 0, "path.Match": 0, "filepath.Match": 0, "regexp2.Compile": 0, "regexp2.MustCompile": 0, "doublestar.Match": 0,
}

// trusted are files whose patterns are neither a caller's nor a plugin's.
var trusted = map[string]string{
	"surface/exchange/exchange.go": "pages of the documentation, which tests read",
}

// ownMatchers are functions that take a pattern and do not hand it to this package, with the
// reason.
var ownMatchers = map[string]string{
	"core/policy/source.go match":          "lists the files that mortise.yaml names",
	"core/policy/policytest/model.go glob": "is the reference of a test, in a package that tests alone import",
	"core/policy/rule.go whom":             "writes a policy",
	"core/policy/rule.go like":             "writes a policy",
	"surface/rest/admit.go HandleFunc":     "passes a route on",
	"service/account/need.go matches":      "compares two texts",
}

// Only this package holds a text against a pattern that is not a constant of the program:
// elsewhere there would be no steps and no context.
func TestPatternsOfStrangersAreMatchedHere(t *testing.T) {
	t.Parallel()
	const root = "../.."
	looked, constant := 0, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(name, "base/pattern/") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		looked++
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				at, is := direct[named(n.Fun)]
				switch {
				case !is:
				case isConstant(n.Args[at]):
					constant++
				case trusted[name] == "":
					t.Errorf("%s: %s with a pattern that is no constant; use package pattern", files.Position(n.Pos()), named(n.Fun))
				}
			case *ast.FuncDecl:
				if ownMatchers[name+" "+n.Name.Name] == "" && takesPattern(n) && !handsOn(n) {
					t.Errorf("%s: %s takes a pattern; use package pattern, whose matchers take steps", files.Position(n.Pos()), n.Name.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || looked < 500 || constant < 10 {
		t.Errorf("%d files were looked at, with %d constant patterns; %v", looked, constant, err)
	}
}

// named is the name of a function of another package, as it is called.
func named(e ast.Expr) string {
	of, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := of.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return from.Name + "." + of.Sel.Name
}

// isConstant reports whether an expression is made of literals, and of texts that stand for
// themselves in a pattern.
func isConstant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return isConstant(e.X) && isConstant(e.Y)
	case *ast.Ident: // a constant of the file is seen by its declaration
		return e.Obj != nil && e.Obj.Kind == ast.Con
	case *ast.CallExpr:
		return named(e.Fun) == "regexp.QuoteMeta"
	}
	return false
}

// handsOn reports whether a function calls this package.
func handsOn(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && strings.HasPrefix(named(call.Fun), "pattern.")
		return true
	})
	return found
}

// takesPattern reports whether a function has a parameter that is called like a pattern and is
// a text.
func takesPattern(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		kind, isText := p.Type.(*ast.Ident)
		array, isArray := p.Type.(*ast.ArrayType)
		if isArray {
			kind, isText = array.Elt.(*ast.Ident)
		}
		if !isText || !slices.Contains([]string{"string", "byte", "rune"}, kind.Name) {
			continue
		}
		for _, name := range p.Names {
			if slices.ContainsFunc([]string{"pattern", "glob", "wildcard", "regex", "expression"}, func(word string) bool { return strings.HasPrefix(strings.ToLower(name.Name), word) }) {
				return true
			}
		}
	}
	return false
}
