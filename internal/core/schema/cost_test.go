package schema

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// tree returns an expression of and and or, so deep, whose members come in an order in which
// the one that tells the alternatives apart is read last.
func tree(deep int) string {
	if deep == 0 {
		return `{"args":[],"op":"and"}`
	}
	return fmt.Sprintf(`{"args":[%s],"op":"or"}`, tree(deep-1))
}

// recursive are ordinary schemas that refer to themselves in alternatives.
var recursiveSchemas = map[string]string{
	"oneOf": `{"oneOf":[{"type":"object","properties":{"args":{"items":{"$ref":"#"}},"op":{"const":"and"}},"required":["op"]},
		{"type":"object","properties":{"args":{"items":{"$ref":"#"}},"op":{"const":"or"}},"required":["op"]}]}`,
	"anyOf": `{"anyOf":[{"properties":{"args":{"items":{"$ref":"#"}},"op":{"const":"xor"}}},
		{"properties":{"args":{"items":{"$ref":"#"}},"op":{"const":"and"}}},{"properties":{"args":{"items":{"$ref":"#"}},"op":{"const":"or"}}}]}`,
	"allOf": `{"allOf":[{"properties":{"args":{"items":{"$ref":"#"}}}},{"properties":{"args":{"items":{"$ref":"#"}}}},{"properties":{"args":{"items":{"$ref":"#"}}}}]}`,
	"if": `{"if":{"properties":{"args":{"items":{"$ref":"#"}},"op":{"const":"and"}}},"then":{"properties":{"args":{"items":{"$ref":"#"}}}},
		"else":{"properties":{"args":{"items":{"$ref":"#"}}}}}`,
	"not":      `{"not":{"properties":{"args":{"items":{"$ref":"#"}},"op":{"const":"xor"}}},"properties":{"args":{"items":{"$ref":"#"}}}}`,
	"contains": `{"properties":{"args":{"contains":{"$ref":"#"},"items":{"$ref":"#"},"minContains":0},"op":{"type":"string"}}}`,
}

// steps returns how many steps an evaluation takes to its verdict, and to tell why.
func stepsTaken(t *testing.T, schema, value string) (taken int, err error) {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	decoded, err := decode([]byte(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	var all []*budget.Steps
	var most int
	err = s.hold(decoded, func(steps int) *budget.Steps {
		most += steps
		all = append(all, budget.NewSteps(t.Context(), steps))
		return all[len(all)-1]
	}, len(value))
	for _, work := range all {
		most -= work.Left()
	}
	return most, err
}

// Alternatives that refer to themselves are asked once for each part of the value: twice as
// deep takes about twice as many steps, not the square of them.
func TestRecursiveAlternativesDoNotMultiply(t *testing.T) {
	t.Parallel()
	for name, schema := range recursiveSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, deep := range []int{10, 100, 300} {
				if taken, err := stepsTaken(t, schema, tree(deep)); taken > 100*(deep+1) && !hasMisfit(err) || errors.Is(err, budget.ErrSpent) {
					t.Errorf("a value %d deep took %d steps: %v; want at most %d", deep, taken, err, 100*(deep+1))
				}
			}
		})
	}
}

// The reasons of a value that fits no alternative are as many as there are ways to read it.
// They are counted while there are steps, and the value is refused as one that does not fit.
func TestReasonsAreCountedWithinBounds(t *testing.T) {
	t.Parallel()
	deep := strings.Replace(tree(60), `"and"`, `"nand"`, 1)
	s, err := Compile([]byte(recursiveSchemas["oneOf"]))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check(t.Context(), []byte(deep))
	var misfit *Misfit
	if !errors.As(err, &misfit) || len(misfit.Places) != maxPlaces || !strings.Contains(err.Error(), "; and at least ") {
		t.Errorf("got %.300v, want %d places and a count of others", err, maxPlaces)
	}
}

func hasMisfit(err error) bool {
	var misfit *Misfit
	return errors.As(err, &misfit)
}

// costly makes schemas that combine and repeat each other in every way, and small values of
// some depth for them.
type costly struct{ *rand.Rand }

func (r costly) ref() string { return fmt.Sprintf(`{"$ref":"#/$defs/%c"}`, 'a'+r.IntN(3)) }

func (r costly) part() string {
	switch r.IntN(16) {
	case 0, 1:
		return fmt.Sprintf(`{"items":%s}`, r.ref())
	case 2, 3:
		return fmt.Sprintf(`{"properties":{"a":%s,"b":%s}}`, r.ref(), r.ref())
	case 4:
		return fmt.Sprintf(`{"additionalProperties":%s}`, r.ref())
	case 5:
		return fmt.Sprintf(`{"contains":%s,"minContains":%d}`, r.ref(), r.IntN(3))
	case 6:
		return fmt.Sprintf(`{"not":{"items":%s}}`, r.ref())
	case 7:
		return fmt.Sprintf(`{"if":{"items":%s},"then":{"items":%s},"else":{"additionalProperties":%s}}`, r.ref(), r.ref(), r.ref())
	case 8:
		return fmt.Sprintf(`{"patternProperties":{"(a|b){1,500}":%s},"propertyNames":{"pattern":"^[ab]{0,900}$"}}`, r.ref())
	case 9:
		return fmt.Sprintf(`{"properties":{"a":%s},"unevaluatedProperties":%s}`, r.ref(), r.ref())
	case 10:
		return fmt.Sprintf(`{"prefixItems":[%s],"unevaluatedItems":%s}`, r.ref(), r.ref())
	case 11:
		return fmt.Sprintf(`{"dependentSchemas":{"a":{"additionalProperties":%s}},"uniqueItems":true}`, r.ref())
	case 12:
		return `{"$dynamicRef":"#d"}`
	case 13:
		return `{"multipleOf":1e-900,"pattern":".{900}x"}`
	case 14:
		return `{"enum":[1,"a",[],{}]}`
	}
	return r.ref()
}

func (r costly) schema() string {
	var all []string
	for name := 'a'; name < 'd'; name++ {
		var parts []string
		for range 2 + r.IntN(3) {
			parts = append(parts, r.part())
		}
		all = append(all, fmt.Sprintf(`"%c":{%q:[%s]}`, name, []string{"oneOf", "anyOf", "allOf"}[r.IntN(3)], strings.Join(parts, ",")))
	}
	draft := ""
	if r.IntN(4) == 0 {
		draft = `"$dynamicAnchor":"d",`
	} else {
		all = append(all, `"d":{"$dynamicAnchor":"d","items":{"$ref":"#/$defs/a"}}`)
	}
	return fmt.Sprintf(`{%s"$ref":"#/$defs/a","$defs":{%s}}`, draft, strings.Join(all, ","))
}

func (r costly) value(deep int) string {
	if deep == 0 {
		return []string{"1", `"a"`, "[]", "{}", "1e900", "1." + strings.Repeat("3", 900), `"` + strings.Repeat("ab", 400) + `"`}[r.IntN(7)]
	}
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf(`[%s,%s]`, r.value(deep-1), r.value(r.IntN(2)))
	case 1:
		return fmt.Sprintf(`{"a":%s,"b":%s}`, r.value(deep-1), r.value(r.IntN(2)))
	case 2:
		return fmt.Sprintf(`{"aba":%s}`, r.value(deep-1))
	}
	return fmt.Sprintf(`[%s]`, r.value(deep-1))
}

// Whatever a schema is, a check takes no more steps than the value's size allows: it comes to a
// verdict, or says that it does not. The fast path and the evaluation are both counted.
func TestTheWorkOfACheckIsBoundedByTheValue(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := costly{rand.New(rand.NewPCG(seed, 1))}
	tried := 2000
	if testing.Short() {
		tried = 150
	}
	var told, spent int
	for range tried {
		schema := r.schema()
		s, err := Compile([]byte(schema))
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, schema, err)
		}
		value := r.value(10 + r.IntN(90))
		m := &machine{}
		m.begin([]byte(value))
		m.value(s.program, 0)
		if over := -m.fuel; over > len(value)+1 {
			t.Fatalf("seed %d: %s, %s: the program read %d bytes more than it may", seed, schema, value, over)
		}
		most := 2 * (freeSteps + byteSteps*len(value))
		switch taken, err := stepsTaken(t, schema, value); {
		case taken > most:
			t.Fatalf("seed %d: %s, %s: %d steps; want at most %d", seed, schema, value, taken, most)
		case errors.Is(err, budget.ErrSpent) || errors.Is(err, errDeep):
			spent++
		case err == nil || hasMisfit(err):
			told++
		default:
			t.Fatalf("seed %d: %s, %s: %v; want a verdict or ErrSpent", seed, schema, value, err)
		}
	}
	t.Logf("seed %d: %d checks came to a verdict, %d were given up", seed, told, spent)
	if told < tried/2 {
		t.Errorf("%d of %d checks came to a verdict; want most", told, tried)
	}
}

// What no memory helps against is given up: traces of what was evaluated, in a schema that
// refers to itself, are those of one way to the value.
func TestACheckIsGivenUp(t *testing.T) {
	t.Parallel()
	twice := `{"properties":{"a":{"$ref":"#/$defs/a"}},"unevaluatedProperties":%s}`
	schema := fmt.Sprintf(`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$dynamicRef":"#b"},{"$dynamicRef":"#b"}]},"b":{"$dynamicAnchor":"b",%s}}`, fmt.Sprintf(twice, "true")[1:])
	value := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), []byte(value)); !errors.Is(err, budget.ErrSpent) {
		t.Errorf("%.200v; want ErrSpent", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Check(ctx, []byte(value)); !errors.Is(err, context.Canceled) {
		t.Errorf("%.200v; want context.Canceled", err)
	}
	deep := strings.Repeat("[", maxInside) + strings.Repeat("]", maxInside)
	if s, err = Compile([]byte(`{"items":{"$ref":"#"}}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), []byte(deep)); !errors.Is(err, errDeep) {
		t.Errorf("%.200v; want errDeep", err)
	}
}

// A number is compared as a fraction, at a cost that grows with the square of its digits.
func TestDigitsAreBounded(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"additionalProperties":{"minimum":0,"multipleOf":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value string
		fits  bool
	}{
		{strings.Repeat("7", maxDigits), true}, {strings.Repeat("7", maxDigits+1), false}, {strings.Repeat("7", 1_000_000), false},
		{"0." + strings.Repeat("7", 1_000_000), false}, {"1" + strings.Repeat("0", maxDigits) + "e-5", false},
	} {
		if err := s.Check(t.Context(), []byte(`{"a":`+c.value+`}`)); (err == nil) != c.fits {
			t.Errorf("%.10s, %d digits: %.100v", c.value, len(c.value), err)
		}
	}
	if err := s.Check(t.Context(), []byte(`{"`+strings.Repeat("7", 5000)+`":1}`)); err != nil {
		t.Errorf("the digits of a text: %.100v", err)
	}
	if _, err := Compile([]byte(`{"minimum":` + strings.Repeat("7", 1_000_000) + `}`)); err == nil {
		t.Error("a schema has a bound of a million digits")
	}
}

// The work of compiling grows with the square of the parts and with what regular expressions
// repeat; both are bounded before.
func TestSchemasAreBoundedBeforeTheyAreCompiled(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{"allOf":[` + strings.Repeat("true,", maxParts) + `true]}`,
		`{"allOf":[` + strings.Repeat(`{"pattern":"(a{1000}){1}"},`, 1000) + `true]}`,
		`{"pattern":"` + strings.Repeat("(a{1000})", 100) + `"}`,
	} {
		if _, err := Compile([]byte(bad)); err == nil {
			t.Errorf("%.60s of %d bytes was compiled", bad, len(bad))
		}
	}
	s, err := Compile([]byte(`{"format":"regex"}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // values do not use up what the schema may have
		if err := s.Check(t.Context(), []byte(`"`+strings.Repeat("(a{1000})", 20)+`"`)); err != nil {
			t.Errorf("an expression that a value is: %v", err)
		}
	}
	if err := s.Check(t.Context(), []byte(`"`+strings.Repeat("(a{1000})", 100)+`"`)); err == nil {
		t.Error("a value is an expression of a hundred thousand instructions")
	}
}

// The library validates in tests alone: it has no budget. Its functions for formats look at one
// text each.
func TestOnlyEvaluationsCheckValues(t *testing.T) {
	t.Parallel()
	const root = "../.."
	importing := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return strings.Contains(i.Path.Value, "santhosh-tekuri/jsonschema") }) {
			return nil
		}
		importing++
		if filepath.Dir(path) != filepath.Join(root, "core", "schema") {
			t.Errorf("%s uses the library; package schema bounds the work", path)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || of.Sel.Name != "Validate" {
				return true
			}
			if from, ok := of.X.(*ast.SelectorExpr); !ok || from.Sel.Name != "Format" {
				t.Errorf("%s: the library validates without a budget", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil || importing < 5 {
		t.Errorf("%d files use the library, %v", importing, err)
	}
}
