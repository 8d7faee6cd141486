package python_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract/shu/python"
)

func TestImportsWhereverTheyStand(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"import requests":                                                            "1:1 requests",
		"import os, requests as r, a.b":                                              "1:1 os, 1:1 requests, 1:1 a.b",
		"from urllib import request, parse as p":                                     "1:1 urllib.request, 1:1 urllib.parse",
		"from urllib import (\n  request, # x\n  parse,\n)":                          "1:1 urllib.request, 1:1 urllib.parse",
		"from urllib.parse import urlencode":                                         "1:1 urllib.parse.urlencode",
		"from shu import *":                                                          "1:1 shu.*",
		"from . import requests\nfrom .requests import get\nfrom ...x.y import z":    "",
		"def f():\n    try:\n        import httpx\n    except ImportError: import x": "3:9 httpx, 4:25 x",
		"if 1: import a; import b":                                                   "1:7 a, 1:17 b",
		"import \\\n  a . \\\n b":                                                    "1:1 a.b",
		"# import a\n'import b'\nx = \"\"\"\nimport c\n\"\"\"":                       "",
		`__import__("req" 'uests').get()`:                                            "1:1 requests",
		"__import__(\n name='a.b')":                                                  "1:1 a.b",
		`builtins.__import__("shu.core")`:                                            "1:10 shu.core",
		`(__import__)("a")`:                                                          "1:2 a",
		`importlib.import_module("shu.core")`:                                        "1:11 shu.core",
		`import_module(".requests", "own")`:                                          "1:1 .requests", // of the package itself
		`__import__(name)`:                                                           "",
		"def g():\n  yield from a\nraise X from e\nimport b":                         "4:1 b",
		"x.importer = 1; from_ = import_":                                            "",
		`f"{__import__('a')!r:>{__import__("b")}}{{import c}}"`:                      "1:4 a, 1:24 b",
		`f"{'''"'''}" ; import a`:                                                    "1:16 a",
		"f\"{x!r}\" ; import a":                                                      "1:12 a",
		"rf'\\{__import__(\"a\")}'":                                                  "1:6 a",
		"import \uff52equests":                                                       "1:1 requests", // Python compares names in the form NFKC
		"'''\\'''' ; import a":                                                       "1:12 a",
		"'\\\\' ; import a":                                                          "1:8 a",
		"x = 1if y else 2; import a":                                                 "1:19 a",
		"\ufeffimport a":                                                             "1:1 a",
		"import a\r\nimport b\rimport c":                                             "1:1 a, 2:1 b, 3:1 c",
		"class A:\n\timport b":                                                       "2:2 b",
		"lambda: (yield from x)\nfrom a import b":                                    "2:1 a.b",
	} {
		scan, err := python.Imports([]byte(source))
		var got []string
		for _, i := range scan.Imports {
			got = append(got, fmt.Sprintf("%d:%d %s", i.Line, i.Column, i.Name))
		}
		if err != nil && want != "" || strings.Join(got, ", ") != want {
			t.Errorf("%q: got %q, %v, want %q", source, got, err, want)
		}
	}
}

func TestAddressesInTexts(t *testing.T) {
	t.Parallel()
	scan, err := python.Imports([]byte(`A = "https://a.example/x"
B = f"http://b.example/{x}" # https://c.example
D = "see https://d.example" + 'https://a.example/x'
E = f"{x}https://e.example"
`))
	if want := []string{"https://a.example/x", "http://b.example/"}; err != nil || !slices.Equal(scan.Addresses, want) {
		t.Errorf("got %q, %v, want %q", scan.Addresses, err, want)
	}
}

// What is made to be slow takes no longer than anything else of its size.
func TestSourceThatIsMadeToBeSlow(t *testing.T) {
	t.Parallel()
	took := map[string]time.Duration{}
	for _, part := range []string{"import a\n", "import ", "from .", "from a import b,", "__import__(", "x,", "M:;", "f'{", `"""`, "(", "\r", "from a import ("} {
		began := time.Now()
		code := []byte(strings.Repeat(part, python.MaxBytes/8/len(part)))
		_, _ = python.Imports(code) // whether it can be read is not the question
		_, _ = python.Assigned(code, "M")
		took[part] = time.Since(began)
	}
	t.Run("time", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: the time that source takes which is made to be slow")
		}
		for part, took := range took {
			if took > 10*time.Second {
				t.Errorf("%q, repeated: %v", part, took)
			}
		}
	})
}

func FuzzImports(f *testing.F) {
	for _, seed := range []string{"import a.b as c, d", "from . import (x,\ny)", "f'{a:{b}}' 'x", "__import__('a')", "\"\"\"", "x = [\\\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		before, err := python.Imports([]byte(source))
		if err != nil {
			return
		}
		after, err := python.Imports([]byte("\n\n" + source)) // the same, two lines further down
		if err != nil || len(after.Imports) != len(before.Imports) {
			if strings.HasPrefix(source, "\ufeff") || strings.Contains(source, "coding") {
				return
			}
			t.Fatalf("%q: %v, and %v with %v when it is moved", source, before, after, err)
		}
	})
}
