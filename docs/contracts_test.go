package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
)

const contracts = module + "/internal/catalog/contract"

// TestNoContractIsToldByItsName: outside the folders of contracts, nothing
// compares with a contract's name. What the rest of the host has to know of a
// contract is a fact of the manifest, or an interface of the contract.
func TestNoContractIsToldByItsName(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range contract.All() {
		names = append(names, c.Name())
	}
	if len(names) < 6 {
		t.Fatalf("the contracts are %v", names)
	}
	files := 0
	for _, p := range goList(t) {
		if within(p.ImportPath, contracts) || within(p.ImportPath, module+"/sdk") || within(p.ImportPath, module+"/cmd") {
			continue
		}
		set := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		files += len(parsed)
		for _, f := range parsed {
			w := comparisons{names: names, constants: constantsOf(parsed), packages: contractsOf(f)}
			ast.Inspect(f, func(n ast.Node) bool {
				if w.compares(n) {
					t.Errorf("%s compares with the name of a contract: make what it asks a fact of plugin.Contract, or an interface of the contract", set.Position(n.Pos()))
				}
				return true
			})
		}
	}
	if files < 300 {
		t.Errorf("only %d files were read", files)
	}
}

// TestComparisonsAreSeen holds the test above against what it must find.
func TestComparisonsAreSeen(t *testing.T) {
	t.Parallel()
	const source = `package p
import "` + contracts + `/shu"
const mill = "eventmill"
var ( a = m.Dialect == "shu"; b = x != shu.Name; c = mill == x; d = m.Dialect == "native"; e = x == "native"; f = m.Dialect == o.Dialect )
func g() { switch m.Dialect { case "kernel", mill: case other: }; switch x { case "runtime": } }
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := comparisons{names: []string{"native", "kernel", "runtime", "eventmill", "shu"}, constants: constantsOf([]*ast.File{f}), packages: contractsOf(f)}
	seen := 0
	ast.Inspect(f, func(n ast.Node) bool {
		if w.compares(n) {
			seen++
		}
		return true
	})
	if seen != 5 {
		t.Errorf("%d of 5 comparisons were seen", seen)
	}
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// comparisons finds what compares with the name of a contract, in one file.
type comparisons struct {
	names     []string
	constants map[string]string // of the package, with their texts
	packages  []string          // by what name the file knows folders of contracts
}

func (w comparisons) compares(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return (n.Op == token.EQL || n.Op == token.NEQ) && (w.named(n.X, n.Y) || w.named(n.Y, n.X))
	case *ast.SwitchStmt:
		return slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool {
			return slices.ContainsFunc(s.(*ast.CaseClause).List, func(e ast.Expr) bool { return n.Tag != nil && w.named(e, n.Tag) })
		})
	}
	return false
}

// named reports whether e is the name of a contract. A name that is a word of the
// host too counts only beside a Dialect.
func (w comparisons) named(e, beside ast.Expr) bool {
	text := ""
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ = strconv.Unquote(e.Value)
	case *ast.Ident:
		text = w.constants[e.Name]
	case *ast.SelectorExpr:
		x, isName := e.X.(*ast.Ident)
		return isName && e.Sel.Name == "Name" && slices.Contains(w.packages, x.Name)
	}
	if slices.Contains([]string{"native", "kernel", "runtime"}, text) {
		s, isSelector := beside.(*ast.SelectorExpr)
		return isSelector && strings.EqualFold(s.Sel.Name, "dialect")
	}
	return slices.Contains(w.names, text)
}

func constantsOf(files []*ast.File) map[string]string {
	texts := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, is := n.(*ast.ValueSpec); is {
				for i, value := range v.Values {
					if lit, isLit := value.(*ast.BasicLit); isLit && lit.Kind == token.STRING && i < len(v.Names) {
						texts[v.Names[i].Name], _ = strconv.Unquote(lit.Value)
					}
				}
			}
			return true
		})
	}
	return texts
}

func contractsOf(f *ast.File) []string {
	var names []string
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		switch {
		case !within(path, contracts):
		case i.Name != nil:
			names = append(names, i.Name.Name)
		default:
			names = append(names, path[strings.LastIndexByte(path, '/')+1:])
		}
	}
	return names
}
