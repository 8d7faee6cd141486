package docs_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// TestCommands holds docs/cli.md against what the program says of itself: each
// command has a heading, and below it exactly the flags that it has.
func TestCommands(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	there := map[string][]string{}
	var walk func(path ...string)
	walk = func(path ...string) {
		help, _, err := p.mortise(append([]string{"help"}, path...)...)
		if err != nil {
			t.Fatal(err)
		}
		subs := listed(help, "Available Commands:")
		for _, group := range regexp.MustCompile(`(?m)^(Run and follow|Plugins|Agents|Knowledge|Users and access|Host):$`).FindAllString(help, -1) {
			subs = append(subs, listed(help, group)...)
		}
		if name := "mortise " + strings.Join(path, " "); len(path) > 0 && (len(subs) == 0 || regexp.MustCompile(`(?m)^  `+name+` (.* )?\[flags\]$`).MatchString(help)) { // a group does nothing by itself
			there[name] = longFlags(help)
		}
		for _, sub := range subs {
			if sub != "help" && sub != "completion" {
				walk(append(slices.Clone(path), sub)...)
			}
		}
	}
	walk()
	if len(there) < 10 {
		t.Fatalf("only %v were found", slices.Collect(maps.Keys(there)))
	}

	raw, err := os.ReadFile("cli.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{}
	for _, section := range regexp.MustCompile(`(?m)^#{2,3} `).Split(string(raw), -1) {
		title, body, _ := strings.Cut(section, "\n")
		flags := []string{}
		for _, m := range regexp.MustCompile("`(?:-[a-z], )?--([a-z-]+)").FindAllStringSubmatch(body, -1) {
			if !slices.Contains(flags, m[1]) {
				flags = append(flags, m[1])
			}
		}
		slices.Sort(flags)
		for _, name := range regexp.MustCompile("`(mortise [a-z -]+[a-z])").FindAllStringSubmatch(title, -1) { // those with the same flags may share a title
			shown[name[1]] = flags
		}
	}
	for name, flags := range there {
		if page, known := shown[name]; !known {
			t.Errorf("docs/cli.md has no heading for %s", name)
		} else if !slices.Equal(page, flags) {
			t.Errorf("%s: the page has the flags %v, the command %v", name, page, flags)
		}
		delete(shown, name)
	}
	for name := range shown {
		t.Errorf("there is no command %s", name)
	}
}

// listed returns the first words of the lines below a title.
func listed(help, title string) []string {
	_, rest, _ := strings.Cut(help, title+"\n")
	var words []string
	for line := range strings.SplitSeq(rest, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			break
		}
		words = append(words, fields[0])
	}
	return words
}

// longFlags returns the names of a command's own flags.
func longFlags(help string) []string {
	_, rest, _ := strings.Cut(help, "\nFlags:\n")
	own, _, _ := strings.Cut(rest, "\n\n")
	names := []string{}
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z-]+)`).FindAllStringSubmatch(own, -1) {
		if m[1] != "help" {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

// TestExitStatuses holds the page against internal/surface/cli/exit.go, and that one
// against the list of codes: each code has one status, and refused, absent,
// failed and not now are never the same.
func TestExitStatuses(t *testing.T) {
	t.Parallel()
	numbers, byCode := exitStatuses(t)
	page := map[int]string{}
	onPage := map[string]int{}
	for _, cells := range tables(t, "cli.md", "status") {
		status, err := strconv.Atoi(cells[0])
		if err != nil {
			t.Fatal(err)
		}
		page[status] = cells[1]
		for _, code := range spans(cells[2]) {
			onPage[code] = status
		}
	}
	for name, status := range numbers {
		if page[status] == "" {
			t.Errorf("docs/cli.md does not explain %s, %d", name, status)
		}
	}
	if len(page) != len(numbers) {
		t.Errorf("the page has %d statuses, the program %d", len(page), len(numbers))
	}
	raw, err := os.ReadFile("../protocol/codes.json")
	if err != nil {
		t.Fatal(err)
	}
	var codes []struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(raw, &codes); err != nil {
		t.Fatal(err)
	}
	for _, c := range codes {
		status, has := byCode[c.Code]
		if !has {
			t.Errorf("internal/surface/cli/exit.go gives %s no status", c.Code)
		}
		if onPage[c.Code] != status {
			t.Errorf("%s: the page says %d, the program %d", c.Code, onPage[c.Code], status)
		}
		delete(onPage, c.Code)
	}
	for code := range onPage {
		t.Errorf("there is no code %s", code)
	}
	apart := []plugin.Code{plugin.CodePolicyDenied, plugin.CodeNotFound, plugin.CodeUnavailable, plugin.CodePluginError, plugin.CodeTimeout, plugin.CodeOutcomeUnknown, plugin.CodeInvalidInput}
	seen := map[int]plugin.Code{}
	for _, code := range apart {
		status := byCode[string(code)]
		if other, same := seen[status]; same {
			t.Errorf("%s and %s have one status", code, other)
		}
		seen[status] = code
	}
}

// exitStatuses reads the constants of exit.go, and its table of codes.
func exitStatuses(t *testing.T) (numbers map[string]int, byCode map[string]int) {
	t.Helper()
	numbers, byCode = map[string]int{}, map[string]int{}
	names := map[string]string{} // CodeNotFound -> not_found
	set := token.NewFileSet()
	for _, path := range []string{"../plugin/codes_gen.go", "../internal/surface/cli/exit.go"} {
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if len(n.Values) != 1 {
					return true
				}
				literal, ok := n.Values[0].(*ast.BasicLit)
				if !ok {
					return true
				}
				switch {
				case literal.Kind == token.STRING && strings.HasPrefix(n.Names[0].Name, "Code"):
					names[n.Names[0].Name], _ = strconv.Unquote(literal.Value)
				case literal.Kind == token.INT && strings.HasPrefix(n.Names[0].Name, "exit"):
					numbers[n.Names[0].Name], _ = strconv.Atoi(literal.Value)
				}
			case *ast.KeyValueExpr:
				key, isCode := n.Key.(*ast.SelectorExpr)
				value, isName := n.Value.(*ast.Ident)
				if isCode && isName && names[key.Sel.Name] != "" {
					byCode[names[key.Sel.Name]] = numbers[value.Name]
				}
			}
			return true
		})
	}
	if len(numbers) == 0 || len(byCode) == 0 {
		t.Fatal("internal/surface/cli/exit.go has another form than this test knows")
	}
	return numbers, byCode
}

// TestConfigurationReference: the first configuration on the page has every key,
// with the value that holds where it is not written; the keys of a binding are
// those that there are.
func TestConfigurationReference(t *testing.T) {
	t.Parallel()
	var files []string
	for _, b := range readBlocks(t, "cli.md") {
		if b.file == config.FileName {
			files = append(files, b.text)
		}
	}
	if len(files) != 2 {
		t.Fatalf("the page has %d configurations: one of all keys, one of a binding", len(files))
	}
	got, err := config.Parse([]byte(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	written, err := got.YAML()
	if err != nil {
		t.Fatal(err)
	}
	want, err := config.Default().YAML()
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != string(want) {
		t.Errorf("the page means\n%s\nthe default is\n%s", written, want)
	}
	var onPage, all any
	if err := yaml.Unmarshal([]byte(files[0]), &onPage); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(want, &all); err != nil {
		t.Fatal(err)
	}
	if page, program := keysOf("", onPage), keysOf("", all); !slices.Equal(page, program) {
		t.Errorf("the page has the keys %v, the program %v", page, program)
	}

	var bound struct {
		Bindings []map[string]any `yaml:"bindings"`
	}
	if err := yaml.Unmarshal([]byte(files[1]), &bound); err != nil || len(bound.Bindings) != 1 {
		t.Fatalf("%v, %v", bound, err)
	}
	var keys []string
	binding := reflect.TypeFor[config.Binding]()
	for i := range binding.NumField() {
		keys = append(keys, binding.Field(i).Tag.Get("yaml"))
	}
	slices.Sort(keys)
	if page := slices.Sorted(maps.Keys(bound.Bindings[0])); !slices.Equal(page, keys) {
		t.Errorf("the binding on the page has %v, there are %v", page, keys)
	}
}

// keysOf returns the paths of all keys of mappings, those in lists included.
func keysOf(at string, value any) []string {
	var keys []string
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			keys = append(append(keys, at+key), keysOf(at+key+".", inner)...)
		}
	case []any:
		for _, inner := range value {
			keys = append(keys, keysOf(at+"*.", inner)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
