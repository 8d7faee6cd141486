package terminal

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// figures are numbers that a double does not keep, or that are spelled in another way once
// they were one.
var figures = []string{
	"0", "-0", "0.0", "1234567.89", "-1234567.89", "100000.5", "1.10", "0.30000000000000004", "9007199254740993", "12345678901234567890",
	"123456789012345678901234567890.123", "1e21", "1E+21", "1.5e-9", "0.000001", "1e400", "1e-400",
}

// A number is shown as it is spelled, wherever it stands in a value.
func TestNumbersAreShownAsTheyAreSpelled(t *testing.T) {
	t.Parallel()
	places := map[string]string{
		"alone": `%s`, "a member": `{"a":%s}`, "a member of a member": `{"a":{"b":%s}}`, "an item": `[%s]`, "an item of a member": `{"a":[%s,1]}`,
		"a cell": `[{"a":%s,"b":2}]`, "a cell of a member": `{"a":[{"b":%s}]}`, "an object in a cell": `[{"a":{"b":%s}}]`, "an item of an item": `[[%s]]`,
		"an item of an object in a list": `{"a":[{"b":1},[%s]]}`,
	}
	for place, form := range places {
		for _, figure := range figures {
			var b strings.Builder
			if err := Value(&b, jsontext.Value(fmt.Sprintf(form, figure)), 120); err != nil {
				t.Fatalf("%s, %s: %v", place, figure, err)
			}
			if !regexp.MustCompile(`(^|[^0-9eE.+-])` + regexp.QuoteMeta(figure) + `($|[^0-9eE.+-])`).MatchString(b.String()) {
				t.Errorf("%s: %s is shown as %q", place, figure, b.String())
			}
		}
	}
}

// Progress is told in the figures of the plugin.
func TestProgressIsToldInTheFiguresOfThePlugin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ amount, unit, want string }{
		{"12345678901234567890", "rows", "12345678901234567890 rows"}, {"2.5", "", "2.5"}, {"1234567.89", "", "1234567.89"}, {"1048576", "bytes", "1 MiB"},
		{"1048575", "bytes", "1048575 bytes"},
	} {
		if got := amount(jsontext.Value(c.amount), c.unit); got != c.want {
			t.Errorf("%s of %q is %q, want %q", c.amount, c.unit, got, c.want)
		}
	}
	w := &Watch{screen: &Screen{}, progress: &Progress{}}
	w.advance(plugin.Event{Data: []byte(`{"message":"reading","done":"many","total":{}}`)}) // no number, no harm
}

// No surface writes a figure with an exponent or fewer digits than it has.
func TestSurfacesDoNotRoundToSignificantDigits(t *testing.T) {
	t.Parallel()
	rounds := regexp.MustCompile(`%[-+# 0]*[0-9.]*[eEgG]`)
	looked := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		looked++
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of.Sel.Name == "FormatFloat" && len(call.Args) == 4 {
				if verb, ok := call.Args[1].(*ast.BasicLit); !ok || verb.Value != "'f'" {
					t.Errorf("%s: write a figure with 'f', or as it is spelled", files.Position(call.Pos()))
				}
			}
			for _, arg := range call.Args {
				if text, ok := arg.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.HasSuffix(of.Sel.Name, "f") {
					if format, err := strconv.Unquote(text.Value); err == nil && rounds.MatchString(strings.ReplaceAll(format, "%%", "")) {
						t.Errorf("%s: %q writes a figure with an exponent", files.Position(call.Pos()), format)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || looked < 100 {
		t.Errorf("%d files were looked at, %v", looked, err)
	}
}
