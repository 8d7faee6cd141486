package pattern_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Every text in a call of New is a regular expression, so that none fails when it is first used.
// And none of these packages compiles one before main.
func TestPatternsOfTheProgramCompile(t *testing.T) {
	t.Parallel()
	const root = "../.."
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "New" {
				return true
			}
			if name, ok := of.X.(*ast.Ident); !ok || name.Name != "pattern" {
				return true
			}
			for _, text := range texts(call.Args[0]) {
				if _, err := regexp.Compile(text); err != nil {
					t.Errorf("%s: %v", files.Position(call.Pos()), err)
				}
			}
			found++
			return true
		})
		return nil
	})
	if err != nil || found < 50 {
		t.Errorf("%d patterns were found, %v", found, err)
	}
}

// texts are the literals of an expression: one that is put together of others is tried in parts.
func texts(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return []string{text}
		}
	case *ast.BinaryExpr:
		return append(texts(e.X), texts(e.Y)...)
	}
	return nil
}

func TestAPatternIsARegularExpression(t *testing.T) {
	t.Parallel()
	p := pattern.New(`a(b+)`)
	if p.String() != `a(b+)` || !p.MatchString("xabb") || p.Match([]byte("b")) || p.FindString("xabbx") != "abb" ||
		p.FindStringSubmatch("xabb")[1] != "bb" || p.FindStringIndex("xab")[0] != 1 || len(p.FindAllString("ab ab", -1)) != 2 ||
		p.FindAllStringSubmatch("ab", -1)[0][1] != "b" || p.FindAllStringSubmatchIndex("ab", -1)[0][3] != 2 ||
		string(p.FindAllSubmatch([]byte("ab"), -1)[0][1]) != "b" || p.ReplaceAllString("ab", "$1") != "b" ||
		p.ReplaceAllStringFunc("ab", strings.ToUpper) != "AB" {
		t.Error("a method differs from that of regexp")
	}
	defer func() {
		if recover() == nil {
			t.Error("a text that is none does not panic")
		}
	}()
	pattern.New(`(`).MatchString("")
}
