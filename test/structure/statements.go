package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Statement is SQL text in the code, or a part of such a text, that names a table whose
// rows are of tenants.
type Statement struct {
	At   string // file:line
	Text string // its words one space apart; ? stands for what is known at run time alone
	Why  string // it is not bound to a tenant, "" where it is
}

// unknown stands for a part of a text that the source does not have.
const unknown = "§"

// Statements returns the SQL of all code below root that is shipped. A file that the Go
// parser refuses is an error. Migrations work on all rows there are, and are not read.
func Statements(root string) (all []Statement, err error) {
	tables, err := tenantTables(root)
	if err != nil {
		return nil, err
	}
	dirs := map[string][]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata", "bench", "test", "storetest", "pgtest"}, d.Name()) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			dirs[filepath.Dir(path)] = append(dirs[filepath.Dir(path)], path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for dir, paths := range dirs {
		sources := map[string][]byte{}
		for _, path := range paths {
			if sources[path], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		found, err := statementsOf(sources, tables)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Statement) int { return strings.Compare(a.At, b.At) })
	return all, nil
}

var (
	createTable = regexp.MustCompile(`(?s)CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+) \((.*?)\n\)`)
	addTenant   = regexp.MustCompile(`ALTER TABLE ([a-z_]+) ADD COLUMN tenant\b`)
	tenantIs    = regexp.MustCompile(`(?m)^\s*tenant\s`)
)

// tenantTables returns the tables with a column tenant, as the migrations make them.
func tenantTables(root string) (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(root, "internal/store/*/migrations/*.sql"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("there are no migrations: %w", err)
	}
	tables := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, m := range createTable.FindAllStringSubmatch(string(text), -1) {
			if tenantIs.MatchString(m[2]) {
				tables[strings.TrimSuffix(m[1], "_new")] = true
			}
		}
		for _, m := range addTenant.FindAllStringSubmatch(string(text), -1) {
			tables[m[1]] = true
		}
	}
	return tables, nil
}

// statementsOf returns the SQL of the files of one package.
func statementsOf(sources map[string][]byte, tables map[string]bool) (all []Statement, err error) {
	files := token.NewFileSet()
	f := folder{values: map[string]ast.Expr{}}
	var parsed []*ast.File
	for path, text := range sources {
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
		for _, decl := range file.Decls {
			general, is := decl.(*ast.GenDecl)
			if !is {
				continue
			}
			for _, spec := range general.Specs {
				if values, is := spec.(*ast.ValueSpec); is && len(values.Names) == len(values.Values) {
					for i, name := range values.Names {
						f.values[name.Name] = values.Values[i]
					}
				}
			}
		}
	}
	for _, file := range parsed {
		for _, decl := range file.Decls {
			all = append(all, f.in(files, decl, tables)...)
		}
	}
	return all, nil
}

// in returns the SQL of one declaration: its texts, and the queries that it begins with
// selectFrom, each with the conditions that where and of add to it up to the next.
func (f folder) in(files *token.FileSet, decl ast.Decl, tables map[string]bool) (all []Statement) {
	type begun struct {
		at   token.Pos
		text string
	}
	var queries []*begun
	latest := map[string]*begun{} // by the variable
	look := func(at token.Pos, text string) {
		if named, why := Bound(text, tables); named {
			all = append(all, Statement{At: files.Position(at).String(), Text: plain(text), Why: why})
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		if assigned, is := n.(*ast.AssignStmt); is && len(assigned.Lhs) == 1 && len(assigned.Rhs) == 1 {
			call, is := assigned.Rhs[0].(*ast.CallExpr)
			if name, named := assigned.Lhs[0].(*ast.Ident); is && named && calledName(call) == "selectFrom" {
				latest[name.Name] = &begun{}
				queries = append(queries, latest[name.Name])
				*latest[name.Name] = begun{call.Pos(), f.query(call)}
				return false
			}
		}
		if call, is := n.(*ast.CallExpr); is {
			of := latest[receiver(call)]
			switch name := calledName(call); {
			case name == "selectFrom":
				look(call.Pos(), f.query(call))
				return false
			case of != nil && name == "of":
				of.text += " AND tenant = ?"
				return false
			case of != nil && name == "where":
				of.text += " AND " + f.text(call.Args[0], 0)
				return false
			}
			return true
		}
		if expr, is := n.(ast.Expr); is {
			if text := f.text(expr, 0); text != unknown && text != "" {
				look(n.Pos(), text)
				return false
			}
		}
		return true
	})
	for _, q := range queries {
		look(q.at, q.text)
	}
	return all
}

// query returns how a call of selectFrom begins a query.
func (f folder) query(call *ast.CallExpr) string {
	if len(call.Args) != 2 {
		return unknown
	}
	return "SELECT " + f.text(call.Args[0], 0) + " FROM " + f.text(call.Args[1], 0) + " WHERE true"
}

// receiver returns the variable whose method is called, "" where it is none.
func receiver(call *ast.CallExpr) string {
	if fun, is := call.Fun.(*ast.SelectorExpr); is {
		if name, is := fun.X.(*ast.Ident); is {
			return name.Name
		}
	}
	return ""
}

func calledName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

func plain(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, unknown, "?")), " ")
}

// A folder puts texts together of the constants and variables of a package.
type folder struct{ values map[string]ast.Expr }

// text returns the text of an expression, with unknown for what is not in the source.
func (f folder) text(e ast.Expr, depth int) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return f.text(e.X, depth) + f.text(e.Y, depth)
		}
	case *ast.ParenExpr:
		return f.text(e.X, depth)
	case *ast.Ident:
		if value, known := f.values[e.Name]; known && depth < 8 {
			return f.text(value, depth+1)
		}
	}
	return unknown
}

var tokens = regexp.MustCompile(unknown + `|[()]|[A-Za-z_][A-Za-z_0-9.]*|'[^']*'|[^\s]`)

// A level is a part of a statement between parentheses.
type level struct {
	tables int  // of tenants that it names
	tests  int  // of their column tenant
	or     bool // one of its conditions may stand in place of another
	insert bool // it inserts into such a table, and has no columns yet
}

// Bound reports whether a text names tables of tenants, and why it is not bound to one: each
// part of it has a comparison of the column tenant for every such table that it names, and
// no OR beside that; what is inserted has a value for the column. A table whose name the
// source does not have counts as one of tenants.
func Bound(text string, tables map[string]bool) (named bool, why string) {
	words := tokens.FindAllString(text, -1)
	levels := []*level{{}}
	end := func(l *level) {
		switch {
		case why != "":
		case l.insert:
			why = "it inserts without the columns, of which one would be tenant"
		case l.tests < l.tables:
			why = "it names a table of tenants, and compares no tenant"
		case l.tables > 0 && l.or:
			why = "OR stands beside the comparison of the tenant"
		}
	}
	at := func(i int) string {
		if i < 0 || i >= len(words) {
			return ""
		}
		return words[i]
	}
	for i, word := range words {
		top := levels[len(levels)-1]
		switch {
		case word == "(":
			inner := &level{}
			if top.insert {
				top.insert = false
				inner.tables = 1
			}
			levels = append(levels, inner)
		case word == ")" && len(levels) > 1:
			end(top)
			levels = levels[:len(levels)-1]
		case word == "OR":
			top.or = true
		case (word == "tenant" || strings.HasSuffix(word, ".tenant")) && at(i+1) == "=":
			top.tests++
		case word == "tenant" && len(levels) > 1 && (at(i+1) == "," || at(i+1) == ")") && top.tests == 0 && (at(i-1) == "(" || at(i-1) == ","):
			top.tests++
		case slices.Contains([]string{"FROM", "JOIN", "INTO", "UPDATE"}, word) && (tables[at(i+1)] || at(i+1) == unknown):
			named = true
			if word == "INTO" {
				top.insert = true
			} else {
				top.tables++
			}
		}
	}
	for _, l := range levels {
		end(l)
	}
	return named, why
}
