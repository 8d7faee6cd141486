package python_test

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract/shu/python"
)

// plain makes a literal's value comparable.
func plain(value any) any {
	switch v := value.(type) {
	case *python.Dict:
		pairs := []any{"dict"}
		for i := range v.Keys {
			pairs = append(pairs, plain(v.Keys[i]), plain(v.Values[i]))
		}
		return pairs
	case []any:
		items := []any{}
		for _, item := range v {
			items = append(items, plain(item))
		}
		return items
	case python.Number:
		return "number " + string(v)
	case python.Bytes:
		return "bytes " + string(v)
	}
	return value
}

func TestLiterals(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]any{
		`None`:                       nil,
		` True `:                     true,
		`"a"`:                        "a",
		`'a' "b" r'\n'`:              `ab\n`,
		`"\x41\u00e9\U0001F600\101"`: "Aé😀A",
		`"\q\
x"`: `\qx`,
		`"""a
b"""`: "a\nb",
		`u'x'`:                     "x",
		`b"\xff"`:                  "bytes \xff",
		`0x_1f`:                    "number 31",
		`-1_000`:                   "number -1000",
		`-0.5e3`:                   "number -500",
		`.5`:                       "number 0.5",
		`00`:                       "number 0",
		`()`:                       []any{},
		`(1,)`:                     []any{"number 1"},
		`(1)`:                      "number 1",
		`[1, 'x', ]`:               []any{"number 1", "x"},
		`{1, 2}`:                   []any{"number 1", "number 2"},
		`{}`:                       []any{"dict"},
		`{"a": {"b": (1, 2)},}`:    []any{"dict", "a", []any{"dict", "b", []any{"number 1", "number 2"}}},
		"[ # comment\n 1, \\\n 2]": []any{"number 1", "number 2"},
		"('one '\n 'two')":         "one two",
		`"a" + ("b" + "c")`:        "abc",
		`[1] + [*[2], 3]`:          []any{"number 1", "number 2", "number 3"},
		`{**{"a": 1}, "b": 2}`:     []any{"dict", "a", "number 1", "b", "number 2"},
		`{**{"a": 2}, **{"a": 1}}`: []any{"dict", "a", "number 1"},
	} {
		got, err := python.Literal([]byte(source))
		if err != nil || !reflect.DeepEqual(plain(got), want) {
			t.Errorf("%s: got %#v, %v, want %#v", source, plain(got), err, want)
		}
	}
}

func TestWhatIsNoLiteral(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		``:                       "line 1, column 1: the literal ends too early",
		`[1, x]`:                 "line 1, column 5: x is a name: only literals are read, and nothing is run",
		`dict(a=1)`:              "line 1, column 1: dict is a name: only literals are read, and nothing is run",
		"{\n  'a': os.environ}":  "line 2, column 8: os is a name: only literals are read, and nothing is run",
		`f"{x}"`:                 "line 1, column 1: an f-string is computed: only literals are read",
		`[x for x in y]`:         "line 1, column 2: x is a name: only literals are read, and nothing is run",
		`[1 for x in y]`:         "line 1, column 4: for is a name: only literals are read, and nothing is run",
		`"a" + 1`:                "line 1, column 5: + does not belong here: texts and lists are added, and nothing is run",
		`[*"ab"]`:                "line 1, column 3: only a list is spread into a list",
		`{**[1]}`:                "line 1, column 4: only a dictionary is spread into a dictionary",
		`"a"(1)`:                 "line 1, column 4: a call is no literal: nothing is run",
		`1j`:                     "line 1, column 1: 1j is imaginary: JSON has no such number",
		`007`:                    "line 1, column 1: 007 is no number of Python: it begins with 0",
		`1e999`:                  "line 1, column 1: 1e999 is no number that is read here",
		`"a`:                     "line 1, column 1: the text does not end",
		`"""a`:                   "line 1, column 1: the text does not end",
		`"\ud800"`:               "line 1, column 1: the escape of d800 is no character of its own",
		`"\N{BULLET}"`:           `line 1, column 1: \N{...} is not read here: write the character itself`,
		`"a" b"b"`:               "line 1, column 5: text and bytes stand one after another",
		`[1, 2`:                  "line 1, column 6: the literal ends too early",
		`{1: 2, 3}`:              "line 1, column 9: } does not belong here: only literals are read",
		`--1`:                    "line 1, column 2: - does not belong here: only literals are read",
		"'a\x00'":                "line 1, column 3: it holds a zero byte",
		strings.Repeat("[", 100): "line 1, column 66: it is nested deeper than 64",
		"# coding: utf-7\n1":     "line 1, column 1: it is said to be encoded in utf-7: only UTF-8 is read",
	} {
		if got, err := python.Literal([]byte(source)); err == nil || err.Error() != want {
			t.Errorf("%.60s: got %#v, %v, want %s", source, got, err, want)
		}
	}
}

func TestTheOneAssignmentCounts(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"M = {'a': 1}": "",
		"'''doc: M = 2'''\nimport os\nx = os.sep\nM = {'a': 1}\n": "",
		"from typing import Any\nM: dict[str, Any] = {'a': 1}":    "",
		"x = 1; M = {'a': 1}":                          "",
		"M = {'a': 1}\ndef get():\n    return M\n":     "",
		"__all__ = ['M']\nM = {'a': 1}  # M.update(x)": "",
		"x = 1":                     "line 1, column 1: it gives M no value at its top level",
		"M = {}\nM = {}":            "line 2, column 1: M is given a value twice",
		"M = {}\nM['a'] = 1":        "line 2, column 1: M may change here, and the file is not run: give it its whole value in one literal",
		"M = {}\nM.update(a=1)":     "line 2, column 1: M may change here, and the file is not run: give it its whole value in one literal",
		"M = {}\nchange(M)":         "line 2, column 8: M may change here, and the file is not run: give it its whole value in one literal",
		"if True:\n  M = {}":        "line 2, column 3: M may change here, and the file is not run: give it its whole value in one literal",
		"M = {} | {}":               "line 1, column 8: | does not belong here: only literals are read",
		"M = dict(a=1)":             "",
		"M = dict(**{'a': 2}, a=1)": "",
		"from collections import OrderedDict\nM = dict(OrderedDict([('a', 1)]))": "",
		"A = 'a'\nM = {A: 1}":                              "",
		"A: str = 'a'\nB = {A: 1}\nM = {**B}":              "",
		"A = ['a']\nA = ['b']\nM = {'a': A}":               "line 1, column 1: A stands elsewhere too, and may change there, and the file is not run: write its value where it is needed",
		"A = ['a']\nA.append('b')\nM = {'a': A}":           "line 1, column 1: A stands elsewhere too, and may change there, and the file is not run: write its value where it is needed",
		"A = ['a']\nprint(f'{A.append(1)}')\nM = {'a': A}": "line 1, column 1: A stands elsewhere too, and may change there, and the file is not run: write its value where it is needed",
		"if x:\n  A = 'a'\nM = {A: 1}":                     "line 3, column 6: A is a name: only literals are read, and nothing is run",
		"M = {A: 1}\nA = 'a'":                              "line 1, column 6: A is a name: only literals are read, and nothing is run",
		"A = b()\nM = {A: 1}":                              "line 2, column 6: A is a name: only literals are read, and nothing is run",
		"M = dict([1])":                                    "line 1, column 5: dict is given something else than a dictionary, pairs and named values: nothing is run",
		"M = list('ab')":                                   "line 1, column 5: list is given something else than one list: nothing is run",
		"M = {'a': str(1)}":                                "line 1, column 11: str is a name: only literals are read, and nothing is run",
		"M: dict":                                          "line 1, column 1: M may change here, and the file is not run: give it its whole value in one literal",
	} {
		got, err := python.Assigned([]byte(source), "M")
		switch {
		case want == "" && (err != nil || !reflect.DeepEqual(plain(got), []any{"dict", "a", "number 1"})):
			t.Errorf("%q: got %#v, %v", source, plain(got), err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%q: got %v, want %s", source, err, want)
		}
	}
}

// FuzzLiteral holds what is read against Python itself, where there is one: a
// text that is accepted means the same there. No literal imports anything.
func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{`{"a": [1, -2.5, (True, None)], 'b': r"\x" "\x41"}`, `{1, 2}`, `b'\0'`, "'''x\r\ny'''", `1_0`, `f"{a}"`, `"\400"`, `'\q' "\u00e9"`} {
		f.Add(seed)
	}
	program, _ := exec.LookPath("python3")
	f.Fuzz(func(t *testing.T, source string) {
		value, err := python.Literal([]byte(source))
		if err != nil {
			return
		}
		if scan, err := python.Imports([]byte(source)); err != nil || len(scan.Imports) > 0 {
			t.Fatalf("%q is a literal, and imports %v, %v", source, scan.Imports, err)
		}
		got, isText := value.(string)
		if !isText || program == "" {
			return
		}
		const meaning = "import ast, json, sys; print(json.dumps(ast.literal_eval(sys.argv[1].strip())))"
		out, err := exec.Command(program, "-W", "ignore", "-c", meaning, source).Output()
		var want any
		if err != nil || json.Unmarshal(out, &want) != nil {
			return // Python is stricter
		}
		if got != want {
			t.Fatalf("%q: got %q, Python has %q", source, got, want)
		}
	})
}
