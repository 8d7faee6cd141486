package store_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keepsByDesign lists functions that change what they were given, and why a second run of the
// closure that calls them finds it as the first did.
var keepsByDesign = map[string]string{
	"plan.void":            "the run was reset by the closure of take, which has made the row",
	"schedule.materialise": "the row of the schedule was read in the same transaction",
	"schedule.saved":       "likewise",
	"session.nameRow":      "the row was made in the same transaction",
	"postgres.signer":      "the key is in a file: no rollback takes it back",
	"sqlite.signer":        "likewise",
	"postgres.take":        "a lease that was not committed renews and holds nothing",
}

// TestNoClosureKeepsAnythingOfAnEarlierRun reads every closure and function of the host that takes a
// transaction. A store may run it again: what it assigns outside of itself, it has to reset at its start,
// before it reads it and before it can return without an error.
func TestNoClosureKeepsAnythingOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	looked, used := 0, map[string]bool{}
	for _, tree := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "storetest") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "Tx") {
				return err
			}
			n, found, err := kept(path, text)
			if err != nil {
				return err
			}
			looked += n
			for _, f := range found {
				of := filepath.Base(filepath.Dir(path)) + "." + f.in
				used[of] = true
				if keepsByDesign[of] == "" {
					t.Errorf("%s: %s keeps %s, which a second run of the closure finds changed: reset it at the start of the closure, or copy it", f.at, f.in, f.path)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range keepsByDesign {
		if !used[name] {
			t.Errorf("%s keeps nothing any more", name)
		}
	}
	if looked < 150 {
		t.Errorf("%d closures and functions take a transaction, want at least 150: the test does not find them any more", looked)
	}
}

// TestWhatCountsAsKept holds the rules of the test above against examples.
func TestWhatCountsAsKept(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`n = 0; n++; return nil`:          "",
		`n, err = tx.Count(); return err`: "",
		`if n, err = tx.Count(); err != nil || n == 0 { return err }; return nil`:    "",
		`err := tx.Do(); if err != nil { return err }; n = 1; return nil`:            "",
		`all = all[:0]; all = append(all, 1); return nil`:                            "",
		`clear(m); m["a"] = 1; return nil`:                                           "",
		`*p = T{}; p.A = 1; return nil`:                                              "",
		`p.A = 1; return tx.Put(p)`:                                                  "",
		`row := *p; row.A = 1; return nil`:                                           "",
		`for i := range 3 { _ = i }; return nil`:                                     "",
		`n++; return nil`:                                                            "n",
		`n += 1; return nil`:                                                         "n",
		`n = n + 1; return nil`:                                                      "n",
		`all = append(all, 1); return nil`:                                           "all",
		`m["a"] = 1; return nil`:                                                     "m[]",
		`if ok { n = 1 }; return nil`:                                                "n",
		`if ok { return errors.New("no") }; n = 1; return nil`:                       "",
		`if ok { return nil }; n = 1; return nil`:                                    "n",
		`if err != nil || ok { return err }; n = 1; return nil`:                      "n",
		`got, err := tx.Page(n); n = got; return err`:                                "n",
		`tx.Put(p); p.A = 1; return nil`:                                             "p.A",
		`tx.Put(p.Key()); p.A = 1; return nil`:                                       "p.A",
		`p.A = p.A + 1; return nil`:                                                  "p.A",
		`func() { n++ }(); return nil`:                                               "n",
		`for n = range 3 {}; return nil`:                                             "n",
		`if p.A = 1; ok { return nil }; p.B = 2; return nil`:                         "p.B",
		`set := func(tx Tx, to int) error { n = to; return nil }; return set(tx, 1)`: "",
		`other++; return nil`:                                                        "other",
	} {
		text := "package x\nfunc f(p *T, m map[string]int) {\nvar n int; var all []int; var ok bool; var err error\nWrite(func(tx Tx) error {\n" + body + "\n})\n}\n"
		_, found, err := kept("x.go", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := ""
		if len(found) > 0 {
			got = found[0].path
		}
		if got != want {
			t.Errorf("%s: kept %q, want %q", body, got, want)
		}
	}
	for text, want := range map[string]string{
		"func (p *T) put(tx Tx) error { p.A = 1; return nil }":            "",
		"func (p *T) put(tx Tx) error { tx.Put(p); p.A = 1; return nil }": "p.A",
		"func (p T) put(tx Tx) error { tx.Put(p); p.A = 1; return nil }":  "",
		"func put(tx Tx, n int) error { n++; return nil }":                "",
	} {
		_, found, err := kept("x.go", []byte("package x\n"+text))
		if got := fmt.Sprint(found); err != nil || (want == "") != (len(found) == 0) || !strings.Contains(got, want) {
			t.Errorf("%s: kept %s, %v, want %q", text, got, err, want)
		}
	}
}

// A keeping is an assignment that outlives a run.
type keeping struct{ at, in, path string }

// kept returns how many closures and functions of a file take a transaction, and what they keep.
func kept(name string, text []byte) (n int, found []keeping, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, 0) // with the objects of identifiers
	if err != nil {
		return 0, nil, err
	}
	in := ""
	ast.Inspect(file, func(node ast.Node) bool {
		var r *run
		switch f := node.(type) {
		case *ast.FuncDecl:
			in = f.Name.Name
			if f.Body == nil || !takesTx(f.Type) {
				return true
			}
			r = &run{body: f.Body, outer: pointers(f), own: true}
		case *ast.FuncLit:
			if !takesTx(f.Type) {
				return true
			}
			r = &run{body: f.Body, outer: func(id *ast.Ident) bool {
				return id.Obj == nil || id.Obj.Kind == ast.Var && (id.Obj.Pos() < f.Pos() || id.Obj.Pos() > f.End()) // no object: of another file
			}}
		default:
			return true
		}
		n++
		r.look()
		for _, k := range r.kept {
			found = append(found, keeping{fset.Position(k.pos).String(), in, k.path})
		}
		return true
	})
	return n, found, nil
}

// takesTx reports whether a function has a parameter of a type Tx.
func takesTx(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		switch of := p.Type.(type) {
		case *ast.Ident:
			return of.Name == "Tx"
		case *ast.SelectorExpr:
			pkg, _ := of.X.(*ast.Ident)
			return of.Sel.Name == "Tx" && pkg != nil && pkg.Name != "pgx" && pkg.Name != "sql"
		}
		return false
	})
}

// pointers are the receiver and the parameters through which a function changes what is its caller's.
func pointers(f *ast.FuncDecl) func(*ast.Ident) bool {
	fields := slices.Clone(f.Type.Params.List)
	if f.Recv != nil {
		fields = append(fields, f.Recv.List...)
	}
	through := map[*ast.Object]bool{}
	for _, field := range fields {
		switch field.Type.(type) {
		case *ast.StarExpr, *ast.MapType, *ast.ArrayType:
			for _, name := range field.Names {
				through[name.Obj] = true
			}
		}
	}
	return func(id *ast.Ident) bool { return through[id.Obj] }
}

// A run looks at one closure.
type run struct {
	body  *ast.BlockStmt
	outer func(*ast.Ident) bool // its variable is not the closure's own
	own   bool                  // assigning such a variable itself is of no consequence: it is a parameter

	resets []string // paths that it assigns at its start
	kept   []struct {
		path string
		pos  token.Pos
	}
}

func (r *run) look() {
	var read []string // paths that were read before
	for _, stmt := range r.body.List {
		first := stmt
		if in, is := stmt.(*ast.IfStmt); is && in.Init != nil {
			first = in.Init
		}
		if assign, is := first.(*ast.AssignStmt); is && assign.Tok == token.ASSIGN {
			for _, path := range r.targets(assign) {
				before := slices.Concat(read, r.reads(assign))
				if !slices.ContainsFunc(before, func(other string) bool { return overlap(path, other) }) || emptied(assign) {
					r.resets = append(r.resets, path)
				}
			}
		}
		if path := r.cleared(stmt); path != "" {
			r.resets = append(r.resets, path)
			continue
		}
		read = append(read, r.reads(stmt)...)
		if returnsEarly(stmt) {
			break
		}
	}
	ast.Inspect(r.body, func(node ast.Node) bool {
		switch s := node.(type) {
		case *ast.FuncLit:
			return !takesTx(s.Type) // looked at by itself
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				for _, x := range s.Lhs {
					r.assigned(x)
				}
			}
		case *ast.IncDecStmt:
			r.assigned(s.X)
		case *ast.RangeStmt:
			if s.Tok == token.ASSIGN {
				r.assigned(s.Key)
				r.assigned(s.Value)
			}
		}
		return true
	})
}

func (r *run) assigned(x ast.Expr) {
	path := r.target(x)
	if path == "" || slices.ContainsFunc(r.resets, func(reset string) bool { return within(path, reset) }) {
		return
	}
	r.kept = append(r.kept, struct {
		path string
		pos  token.Pos
	}{path, x.Pos()})
}

func (r *run) targets(s *ast.AssignStmt) (paths []string) {
	for _, x := range s.Lhs {
		if path := r.target(x); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// target is the path that an assignment changes outside of the closure, "" if it changes none.
func (r *run) target(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		if r.own || x.Name == "_" {
			return ""
		}
		return r.through(x)
	case *ast.ParenExpr:
		return r.target(x.X)
	case *ast.StarExpr:
		return r.through(x.X)
	case *ast.SelectorExpr:
		if base := r.through(x.X); base != "" {
			return base + "." + x.Sel.Name
		}
	case *ast.IndexExpr:
		if base := r.through(x.X); base != "" {
			return base + "[]"
		}
	}
	return ""
}

// through is the path of what is changed by way of an expression.
func (r *run) through(x ast.Expr) string {
	if id, is := x.(*ast.Ident); is {
		if !r.outer(id) {
			return ""
		}
		return id.Name
	}
	return r.target(x)
}

// reads are the paths that a node reads, of variables from outside.
func (r *run) reads(node ast.Node) (paths []string) {
	written := map[ast.Expr]bool{}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.ASSIGN {
				for _, x := range n.Lhs {
					switch x.(type) {
					case *ast.Ident, *ast.SelectorExpr, *ast.StarExpr:
						written[x] = true
					}
				}
			}
		case *ast.CallExpr:
			if method, is := n.Fun.(*ast.SelectorExpr); is {
				paths = append(paths, r.readOf(method.X)...)
			}
		case *ast.Ident, *ast.SelectorExpr:
			x := n.(ast.Expr)
			if written[x] {
				return false
			}
			if path := r.readOf(x); len(path) > 0 {
				paths = append(paths, path...)
				return false
			}
		case *ast.StarExpr:
			return !written[n]
		}
		return true
	})
	return paths
}

func (r *run) readOf(x ast.Expr) []string {
	switch x := x.(type) {
	case *ast.Ident:
		if x.Obj != nil && x.Obj.Kind == ast.Var && r.outer(x) {
			return []string{x.Name}
		}
	case *ast.SelectorExpr:
		if base := r.readOf(x.X); len(base) > 0 {
			return []string{base[0] + "." + x.Sel.Name}
		}
	}
	return nil
}

// cleared is the path of what a statement clears.
func (r *run) cleared(stmt ast.Stmt) string {
	expr, is := stmt.(*ast.ExprStmt)
	if !is {
		return ""
	}
	call, is := expr.X.(*ast.CallExpr)
	if !is || len(call.Args) != 1 {
		return ""
	}
	if name, is := call.Fun.(*ast.Ident); !is || name.Name != "clear" {
		return ""
	}
	return r.through(call.Args[0])
}

// emptied reports whether a statement is x = x[:0].
func emptied(s *ast.AssignStmt) bool {
	if len(s.Rhs) != 1 {
		return false
	}
	slice, is := s.Rhs[0].(*ast.SliceExpr)
	if !is || slice.Low != nil {
		return false
	}
	high, is := slice.High.(*ast.BasicLit)
	return is && high.Value == "0"
}

// returnsEarly reports whether a statement can end the closure without an error.
func returnsEarly(stmt ast.Stmt) bool {
	if in, is := stmt.(*ast.IfStmt); is && in.Else == nil {
		cond, is := in.Cond.(*ast.BinaryExpr)
		if is && cond.Op == token.NEQ {
			err, isErr := cond.X.(*ast.Ident)
			null, isNil := cond.Y.(*ast.Ident)
			if isErr && isNil && err.Name == "err" && null.Name == "nil" {
				return false
			}
		}
	}
	early := false
	ast.Inspect(stmt, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			early = early || !fails(n)
		}
		return true
	})
	return early
}

// fails reports whether a statement returns an error that is made there, or that has a name of its own.
func fails(s *ast.ReturnStmt) bool {
	if len(s.Results) == 0 {
		return false
	}
	switch last := s.Results[len(s.Results)-1].(type) {
	case *ast.Ident:
		return strings.HasPrefix(last.Name, "err") && last.Name != "err"
	case *ast.CallExpr:
		made, is := last.Fun.(*ast.SelectorExpr)
		return is && (made.Sel.Name == "Errorf" || made.Sel.Name == "New")
	}
	return false
}

// within reports whether a path is another, or a part of it.
func within(path, of string) bool {
	rest, is := strings.CutPrefix(path, of)
	return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func overlap(a, b string) bool { return within(a, b) || within(b, a) }

// wholeHost are packages whose closures the tests of the whole host run.
var wholeHost = []string{"internal/agent/adapter", "internal/agent/toolset", "internal/host", "internal/host/recovery", "internal/host/setup", "internal/service/bridge"}

// TestPackagesThatWriteAreTestedWithClosuresRunTwice: a package that gives closures to the store has a test
// that makes the store run them twice, or is tested with the whole host.
func TestPackagesThatWriteAreTestedWithClosuresRunTwice(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	writes, tested := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || strings.HasPrefix(filepath.ToSlash(dir), "internal/store") {
			return err
		}
		dir = filepath.ToSlash(dir)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			tested[dir] = tested[dir] || strings.Contains(string(text), "sqlstore.RunTwice()")
			return nil
		}
		n, err := closures(path, text)
		writes[dir] = writes[dir] || n > 0
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, writes := range writes {
		switch whole := slices.Contains(wholeHost, dir); {
		case writes && !tested[dir] && !whole:
			t.Errorf("%s gives closures to the store, and no test of it calls sqlstore.RunTwice", dir)
		case !writes && whole:
			t.Errorf("%s gives the store no closure any more", dir)
		}
	}
	if !tested["internal/app"] {
		t.Error("the tests of the whole host do not run closures twice")
	}
}

// closures returns how many closures of a file take a transaction.
func closures(name string, text []byte) (n int, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if f, is := node.(*ast.FuncLit); is && takesTx(f.Type) {
			n++
		}
		return true
	})
	return n, nil
}
