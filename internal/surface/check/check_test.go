package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/surface/check"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// The test binary is the plugins that are checked: started with a first
// argument of "plugin", it is the one that the second names.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		play(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

type counted struct {
	Words int `json:"words"`
}

// play is a plugin that keeps its contract, or breaks it in one place.
func play(role string) {
	p := mortise.New("text.count", "1.0.0")
	words := func(_ *mortise.Call, in struct {
		Text string `json:"text"`
	}) (counted, error) {
		return counted{len(strings.Fields(in.Text))}, nil
	}
	if answer := rawRoles[role]; answer != nil {
		raw(answer)
		return
	}
	switch role {
	case "dead":
		os.Exit(3)
	case "other":
		mortise.Tool(p, "letters", "Count letters.", words)
	case "more":
		mortise.Tool(p, "words", "Count words.", words)
		mortise.Tool(p, "letters", "Count letters.", words)
	case "effects":
		mortise.Operator(p, "words", "Count words.", words, mortise.Effects("db_write"))
	case "named":
		p = mortise.New("text.other", "1.0.0")
		mortise.Tool(p, "words", "Count words.", words)
	case "failing":
		mortise.Tool(p, "words", "Count words.", func(*mortise.Call, jsontext.Value) (counted, error) {
			return counted{}, mortise.Errorf("NO", "not today")
		})
	case "wrong":
		mortise.Tool(p, "words", "Count words.", func(*mortise.Call, jsontext.Value) (string, error) { return "three", nil })
	case "impure":
		var n atomic.Int64
		mortise.Tool(p, "words", "Count words.", func(*mortise.Call, jsontext.Value) (counted, error) {
			return counted{int(n.Add(1))}, nil
		})
	case "candid": // it says that it is not pure
		mortise.Tool(p, "words", "Count words.", func(*mortise.Call, jsontext.Value) (mortise.Result[counted], error) {
			return mortise.Result[counted]{Data: counted{int(time.Now().UnixNano() % 1000)}, Nondeterminism: &mortise.Nondeterminism{Is: true}}, nil
		})
	case "eager":
		eager()
		return
	case "only_hears":
	default:
		mortise.Tool(p, "words", "Count words.", words)
	}
	listening(p, role)
	p.Run()
}

// eager answers every operation as if it had it.
func eager() {
	dec := jsontext.NewDecoder(os.Stdin)
	for {
		raw, err := dec.ReadValue()
		if err != nil {
			return
		}
		var f struct {
			ID     int64  `json:"id"`
			Method string `json:"method"`
		}
		if json.Unmarshal(raw, &f) != nil {
			return
		}
		result := `{}`
		switch f.Method {
		case "initialize":
			result = `{"protocol":"2","plugins":[{"name":"text.count","version":"1.0.0"}]}`
		case "describe":
			result = `{"plugins":[{"name":"text.count","version":"1.0.0","operations":{"words":{"kind":"tool"}}}]}`
		case "execute":
			result = `{"status":"succeeded","data":{"words":3}}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%d,"result":%s}`+"\n", f.ID, result)
		if f.Method == "shutdown" {
			return
		}
	}
}

// files are those of a plugin that keeps its contract.
func files(role string) map[string]string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return map[string]string{
		"manifest.yaml": fmt.Sprintf(`
name: text.count
version: 1.0.0
owner: test
description: Count.
runner: {kind: process, command: [%q, plugin, %s], protocol: "2"}
operations:
  words: {kind: tool, description: Count words., input: in.json, output: out.json}
`, self, role),
		"in.json":                      `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`,
		"out.json":                     `{"type":"object","properties":{"words":{"type":"integer"}},"required":["words"]}`,
		"examples/words.request.json":  `{"text":"to be or"}`,
		"examples/words.response.json": `{"words":3}`,
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// outcomes are the results of checking, as "outcome plugin: check: detail".
func outcomes(t *testing.T, path string, o check.Options) []string {
	t.Helper()
	var heard []string
	o.Observe = func(r check.Result) {
		heard = append(heard, fmt.Sprintf("%s %s: %s: %s", r.Outcome, r.Plugin, r.Check, r.Detail))
	}
	report, err := check.Run(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(heard) != len(report.Results) {
		t.Errorf("%d results were heard of and %d reported", len(heard), len(report.Results))
	}
	return heard
}

func TestAPluginThatKeepsItsContractPasses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, files("good"))
	got := outcomes(t, dir, check.Options{})
	for _, line := range got {
		if !strings.HasPrefix(line, "pass ") {
			t.Error(line)
		}
	}
	for _, want := range []string{
		"text.count: manifest", "text.count: starts and describes itself", "text.count: its code is what the manifest says", "text.count/words: has schemas",
		"text.count/words: runs its example", "text.count/words: gives the same result twice", "text.count: refuses an operation it does not have",
	} {
		if !strings.Contains(strings.Join(got, "\n"), "pass "+want+": ") {
			t.Errorf("there is no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestEachBrokenPromiseIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, role string
		break_     func(files map[string]string)
		want       string // the one failure, or what is there in its place
	}{
		{"unknown key", "good", add("manifest.yaml", "colour: red\n"), "fail DIR: manifest: manifest.yaml: at /colour: unknown key"},
		{"no schema file", "good", without("out.json"), "fail DIR: manifest: manifest.yaml: at /operations/words/output: out.json: no such file"},
		{"schema that is none", "good", replace("in.json", `{"type":"objct"}`), "fail DIR: manifest: "},
		{"no such program", "good", replaceIn("manifest.yaml", "command: [", "command: [/nowhere/program, "), "fail text.count: its code is what the manifest says: launch_failed"},
		{"dies at once", "dead", nothing, "fail text.count: its code is what the manifest says: crashed"},
		{"dies when asked for schemas", "dead", replaceIn("manifest.yaml", ", output: out.json", ""), "fail DIR: starts and describes itself: crashed"},
		{"other operations, and no schemas", "other", replaceIn("manifest.yaml", ", output: out.json", ""), "fail DIR: its code is what the manifest says: code: "},
		{"other operations", "other", nothing, "fail text.count: its code is what the manifest says: "},
		{"more operations", "more", nothing, "fail text.count: its code is what the manifest says: "},
		{"more effects", "effects", nothing, "fail text.count: its code is what the manifest says: "},
		{"another name", "named", nothing, "fail text.count: its code is what the manifest says: "},
		{"example against the input schema", "good", replace("examples/words.request.json", `{"txt":"a"}`), "fail text.count/words: runs its example: invalid_input"},
		{"example that is no JSON", "good", replace("examples/words.request.json", `{"text":`), "fail text.count/words: runs its example: examples/words.request.json: the example is not one JSON object"},
		{"response against the output schema", "good", replace("examples/words.response.json", `{"words":"three"}`), "fail text.count/words: runs its example: examples/words.response.json: "},
		{"fails on its example", "failing", nothing, "fail text.count/words: runs its example: plugin_error (NO): "},
		{"answers against its schema", "wrong", nothing, "fail text.count/words: runs its example: invalid_output"},
		{"impure", "impure", nothing, "fail text.count/words: gives the same result twice: two calls with one input gave two results"},
		{"impure and says so", "candid", nothing, "not run text.count/words: gives the same result twice: it says that it need not"},
		{"no example", "good", without("examples/words.request.json"), "not run text.count/words: runs its example: there is no examples/words.request.json"},
		{"answers what it does not have", "eager", nothing, "fail text.count: refuses an operation it does not have: it answered as if it had one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			own := files(c.role)
			c.break_(own)
			write(t, dir, own)
			want := strings.Replace(c.want, "DIR", dir, 1)
			got := outcomes(t, dir, check.Options{})
			found := false
			for _, line := range got {
				found = found || strings.HasPrefix(line, want)
			}
			if !found {
				t.Errorf("there is no %q in\n%s", want, strings.Join(got, "\n"))
			}
			if strings.HasPrefix(want, "not run ") && strings.Contains(strings.Join(got, "\n"), "fail ") {
				t.Errorf("something failed:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

func nothing(map[string]string) {}

func add(name, text string) func(map[string]string) {
	return func(files map[string]string) { files[name] += text }
}

func replace(name, text string) func(map[string]string) {
	return func(files map[string]string) { files[name] = text }
}

func replaceIn(name, from, to string) func(map[string]string) {
	return func(files map[string]string) {
		if !strings.Contains(files[name], from) {
			panic("there is no " + from)
		}
		files[name] = strings.ReplaceAll(files[name], from, to)
	}
}

func without(name string) func(map[string]string) {
	return func(files map[string]string) { delete(files, name) }
}

func TestATreeIsCheckedPluginByPlugin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good"), files("good"))
	bad := files("good")
	bad["manifest.yaml"] += "a: 1\nb: 2\n"
	write(t, filepath.Join(dir, "bad"), bad)
	report, err := check.Run(t.Context(), dir, check.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed() != 2 { // each place where a manifest is wrong counts
		t.Errorf("%d failed: %+v", report.Failed(), report.Results)
	}
}

func TestThereIsNothingToCheck(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, path := range []string{empty, filepath.Join(empty, "nothing")} {
		if report, err := check.Run(t.Context(), path, check.Options{}); err == nil || len(report.Results) > 0 {
			t.Errorf("%s: %+v, %v", path, report, err)
		}
	}
}
