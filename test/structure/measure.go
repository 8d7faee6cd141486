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

// A Measured is one measure of the tree.
type Measured struct {
	Name    string
	Now     int
	Want    int  // at most, or at least
	AtLeast bool // Want is a lower bound
	Held    int  // what a test holds it to: Want, or what was reached on the way there
}

// Met reports whether the goal is reached.
func (m Measured) Met() bool { return m.within(m.Want) }

// Holds reports whether it is no worse than it was.
func (m Measured) Holds() bool { return m.within(m.Held) }

func (m Measured) within(bound int) bool {
	if m.AtLeast {
		return m.Now >= bound
	}
	return m.Now <= bound
}

// Goal is the goal in words.
func (m Measured) Goal() string {
	if m.AtLeast {
		return fmt.Sprintf(">= %d", m.Want)
	}
	return fmt.Sprintf("<= %d", m.Want)
}

const module = "github.com/mortise-dev/mortise/"

// A source is one file of Go.
type source struct {
	path    string // from the root, with slashes
	lines   int
	test    bool
	imports []string // of this module, without its path
	syntax  *ast.File
	set     *token.FileSet
}

// Measure returns the measures of the tree at root.
func Measure(root string) ([]Measured, error) {
	files, err := sources(root)
	if err != nil {
		return nil, err
	}
	layers, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		return nil, err
	}
	code := func(dir string) (n int) {
		for _, f := range files {
			if !f.test && filepath.ToSlash(filepath.Dir(f.path)) == dir {
				n += f.lines
			}
		}
		return n
	}
	knows := func(dir string) int {
		known := map[string]bool{}
		for _, f := range files {
			for _, path := range f.imports {
				if !f.test && filepath.ToSlash(filepath.Dir(f.path)) == dir && strings.HasPrefix(path, "internal/") {
					known[path] = true
				}
			}
		}
		return len(known)
	}
	count := func(is func(source) bool) (n int) {
		for _, f := range files {
			if is(f) {
				n++
			}
		}
		return n
	}
	sum := func(of func(source) int) (n int) {
		for _, f := range files {
			n += of(f)
		}
		return n
	}
	return []Measured{
		{Name: "folders directly under internal", Now: len(layers), Want: 10, Held: 10},
		{Name: "internal packages that the command line imports", Now: knows("internal/surface/cli"), Want: 10, Held: 10},
		{Name: "lines of internal/app", Now: code("internal/app"), Want: 1600, Held: 1600},
		{Name: "lines of internal/surface/cli for each command", Now: code("internal/surface/cli") / max(1, sum(commands)), Want: 50, Held: 50},
		{Name: "files that import internal/store", Now: count(func(f source) bool { return !f.test && slices.Contains(f.imports, "internal/store") }), Want: 90, Held: 90},
		{Name: "comparisons with the name of a contract outside it", Now: sum(comparisons), Want: 0, Held: 0},
		{Name: "files of more than 500 lines", Now: count(func(f source) bool { return f.lines > 500 && !f.test }), Want: 0, Held: 0},
		{Name: "functions of more than 100 lines", Now: sum(longFunctions), Want: 0, Held: 0},
		{Name: "examples in public packages", Now: sum(examples), Want: 15, AtLeast: true, Held: 15},
	}, nil
}

// sources reads all files of Go that belong to the module.
func sources(root string) (files []source, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); slices.Contains([]string{".git", "node_modules", "testdata", "bench"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := source{path: filepath.ToSlash(rel), lines: strings.Count(string(raw), "\n"), test: strings.HasSuffix(path, "_test.go"), set: token.NewFileSet()}
		if f.syntax, err = parser.ParseFile(f.set, path, raw, parser.SkipObjectResolution); err != nil {
			return err
		}
		for _, spec := range f.syntax.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil && strings.HasPrefix(path, module) {
				f.imports = append(f.imports, path[len(module):])
			}
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

var contractName = regexp.MustCompile(`^"(shu|eventmill|openhermit|runtime|kernel)"$|^(Shu|EventMill|OpenHermit|Runtime|Kernel|eventMill)$`)

// comparisons counts the comparisons of a manifest's contract with a name, outside of
// what reads the contracts.
func comparisons(f source) (n int) {
	if f.test || strings.HasPrefix(f.path, "internal/catalog/registry/dialect/") || strings.HasPrefix(f.path, "internal/catalog/contract/") {
		return 0
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		b, ok := node.(*ast.BinaryExpr)
		if ok && (b.Op == token.EQL || b.Op == token.NEQ) && (named(b.X) || named(b.Y)) && (asked(b.X) || asked(b.Y)) {
			n++
		}
		return true
	})
	return n
}

func asked(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "Dialect" || s.Sel.Name == "Contract" || s.Sel.Name == "envelope")
}

func named(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return contractName.MatchString(e.Value)
	case *ast.Ident:
		return contractName.MatchString(e.Name)
	case *ast.SelectorExpr:
		return contractName.MatchString(e.Sel.Name)
	}
	return false
}

func longFunctions(f source) (n int) {
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && !f.test && f.set.Position(fn.End()).Line-f.set.Position(fn.Pos()).Line >= 100 {
			n++
		}
	}
	return n
}

// commands counts the commands that a file of the command line defines: each has one
// member "use" of a spec, or "Use" of a cobra.Command.
func commands(f source) (n int) {
	if f.test || filepath.ToSlash(filepath.Dir(f.path)) != "internal/surface/cli" {
		return 0
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if member, ok := node.(*ast.KeyValueExpr); ok {
			if name, ok := member.Key.(*ast.Ident); ok && strings.EqualFold(name.Name, "use") {
				n++
			}
		}
		return true
	})
	return n
}

func examples(f source) (n int) {
	if !f.test || !strings.HasPrefix(f.path, "plugin/") && !strings.HasPrefix(f.path, "protocol/") && !strings.HasPrefix(f.path, "sdk/go/") {
		return 0
	}
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example") {
			n++
		}
	}
	return n
}
