package editor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// inJavaScript reads configurations, one a line as a JSON text, as the program does that starts the
// servers of a project, and prints for each the servers that it would start; null for none.
const inJavaScript = `
const text = v => typeof v === "string";
const object = v => typeof v === "object" && v !== null && !Array.isArray(v);
for (const line of require("node:fs").readFileSync(0, "utf8").split("\n").filter(Boolean)) {
	let started = null;
	try {
		const all = JSON.parse(JSON.parse(line)).mcpServers;
		if (object(all)) {
			started = {};
			for (const name of Object.keys(all)) {
				const { type = "stdio", command, args = [], env = {} } = object(all[name]) ? all[name] : {};
				const fits = type === "stdio" && text(command) && command !== "" && Array.isArray(args) && args.every(text) && object(env) && Object.values(env).every(text);
				Object.defineProperty(started, name, { enumerable: true, value: fits ? { command: [command, ...args], env } : null });
			}
		}
	} catch {}
	console.log(JSON.stringify(started));
}`

// A started server is one as the program starts it.
type startedServer struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
}

// What is read of a project's configuration is what the program reads that starts the servers, for
// any text: each server that is known here is started there with the same command and environment,
// and there is none that is not known here.
func TestAProjectIsReadAsTheProgramReadsIt(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	texts := append([]string{}, suspicious...)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 6000 {
		texts = append(texts, mutated(random, suspicious[random.IntN(2+n%2*(len(suspicious)-2))]))
	}
	var in bytes.Buffer
	for _, text := range texts {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(raw, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), node, "-e", inJavaScript)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(texts) {
		t.Fatalf("%d of %d texts were read", len(lines), len(texts))
	}
	understood := 0
	for i, text := range texts {
		var theirs map[string]*startedServer
		if err := json.Unmarshal([]byte(lines[i]), &theirs); err != nil {
			t.Fatalf("%s: %v", lines[i], err)
		}
		ours, err := parseProject([]byte(text))
		if err != nil {
			continue // it counts for nothing
		}
		names := map[string]bool{}
		for _, s := range ours {
			names[s.Name] = true
			if s.Problem != nil {
				continue
			}
			understood++
			if there := theirs[s.Name]; there == nil || !reflect.DeepEqual(there, &startedServer{s.Command, s.Env}) {
				t.Errorf("%q: %s is read as %q %v, and started as %s", text, s.Name, s.Command, s.Env, lines[i])
			}
		}
		for name := range theirs {
			if !names[name] {
				t.Errorf("%q: %q is started, and not known here", text, name)
			}
		}
	}
	if understood < 100 {
		t.Errorf("%d servers were understood: the texts try too little", understood)
	}
}

// suspicious are texts of which some reader reads more than stands there.
var suspicious = []string{
	`{"mcpServers": {"mortise": {"type": "stdio", "command": "/bin/mortise", "args": ["mcp"], "env": {"MORTISE_HOME": "/h"}}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/mortise", "args": ["mcp"], "env": {}}, "other": {"command": "x"}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/sh", "arg\u017f": ["mcp"]}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/sh", "argſ": ["mcp"], "args": ["-c", "x"]}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/sh", "Args": ["mcp"], "ARGS": []}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/sh", "environment": {"A": "b"}, "env": {"A": "c"}}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/sh", "command": "/bin/mortise"}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/sh", "\u0063ommand": "/bin/mortise"}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/mortise"}}, "mcpServers": {"mortise": {"command": "/bin/sh"}}}`,
	`{"mcpservers": {"mortise": {"command": "/bin/mortise"}}, "mcpServers": {}}`,
	`{"mcpServer\u017f": {"mortise": {"command": "/bin/sh"}}}`,
	`{"mcpServers": {"mortise": {"command": ["/bin/mortise", "mcp"]}, "m\u006frtise": {"command": "/bin/sh"}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/mortise", "args": [null], "env": {"A": null}}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/mortise", "args": null, "env": null, "type": null}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/mortise", "url": "http://127.0.0.1/", "headers": {}, "disabled": true}}}`,
	`{"mcpServers": {"__proto__": {"command": "/bin/sh"}, "constructor": {"command": "x"}, "7": {"command": "y"}}}`,
	`{"mcpServers": {"mortise": {"__proto__": {"args": ["x"]}, "command": "/bin/mortise"}}}`,
	`{"servers": {"mortise": {"command": "/bin/mortise"}}, "mcp": {"mortise": {"command": "/bin/mortise"}}}`,
	"\ufeff" + `{"mcpServers": {"mortise": {"command": "/bin/mortise"}}}`,
	`{"mcpServers": {"mortise": {"command": "/bin/mortise", /* args */ "args": ["mcp",],}}} // end`,
	`{"mcpServers": {"mortise\ud800": {"command": "\udfff"}, "\u0000": {"command": "a\u0000b"}}}`,
	`[{"mcpServers": {}}]`, `null`, ``, `{"mcpServers": []}`, `{"mcpServers": {"a": [], "b": 1, "c": "x", "d": {}}}`,
}

// mutated changes a text in a few places, most of them by words that a configuration has.
func mutated(r *rand.Rand, text string) string {
	words := []string{
		`"`, `{`, `}`, `[`, `]`, `,`, `:`, ` `, "\n", "\t", "\u00a0", `\`, `/`, `null`, `true`, `0`, `1e3`, `-`, `"args"`, `"arg\u017f"`, `"argſ"`, `"env"`, `"Env"`, `"environment"`,
		`"command"`, `"COMMAND"`, `"\u212aommand"`, `"type"`, `"stdio"`, `"sse"`, `"mcp"`, `"mortise"`, `"mcpServers"`, `"mcpServerſ"`, `"mcpservers"`, `, "command": "/bin/sh"`, `"a": "b",`,
		`"__proto__"`, `/* x */`, `// x` + "\n", `\u0061`, `\ud800`, `\x41`, "\x01", "\u2028", `'`,
	}
	for range 1 + r.IntN(3) {
		at := r.IntN(len(text) + 1)
		switch r.IntN(4) {
		case 0:
			text = text[:at] + text[min(len(text), at+r.IntN(12)):]
		case 1:
			from := r.IntN(len(text) + 1)
			text = text[:at] + text[from:min(len(text), from+r.IntN(40))] + text[at:]
		default:
			text = text[:at] + words[r.IntN(len(words))] + text[at:]
		}
	}
	return strings.ToValidUTF8(text, "?") // a text of JavaScript is valid
}

// A tool of a server that is only like the host's entry is no tool of the host.
func TestALikenessOfTheHostsEntryIsNotTheHost(t *testing.T) {
	t.Parallel()
	for _, text := range suspicious[2:] {
		all, err := parseProject([]byte(text))
		for _, s := range all {
			if s.Name == HostName && s.Problem == nil && fmt.Sprint(s.Command) != "[/bin/mortise]" {
				t.Errorf("%s is read as %q", text, s.Command)
			}
		}
		if err == nil && strings.Contains(text, "ſ") {
			for _, s := range all {
				if s.Problem == nil {
					t.Errorf("%s is read as %q", text, s.Command)
				}
			}
		}
	}
}
