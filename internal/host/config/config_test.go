package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
)

func TestNothingConfiguredIsTheDefault(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "{}"} {
		c, err := config.Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

func TestWhatIsWrittenCounts(t *testing.T) {
	t.Parallel()
	c, err := config.Parse([]byte(`
ledger: {tools: durable, keep: 720h}
processes: {idle: 90s}
policy:
  allow:
    - kinds: [tool]
    - {operations: ["mail/*"], effects: [gmail_send]}
egress: {loopback: [local_model], map: {api.example.com: "127.0.0.1:9443"}}
bindings:
  - {plugin_id: example.echo, command: [./echo, -v], tools: [plugin.echo], capabilities: [tool.execute], timeout: 2s}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Ledger.Tools != "durable" || time.Duration(c.Processes.Idle) != 90*time.Second || len(c.Policy.Allow) != 2 || c.Bindings[0].Command[1] != "-v" {
		t.Errorf("%+v", c)
	}
	if c.Egress.Loopback[0] != "local_model" || c.Egress.Map["api.example.com"] != "127.0.0.1:9443" {
		t.Errorf("%+v", c.Egress)
	}
	if c.Processes.Max != 64 {
		t.Error("a key beside the written one lost its default")
	}
}

func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"polcy: {}", "polcy"},
		{"policy: {alow: []}", "alow"},
		{"processes: {idle: soon}", "soon"},
		{"processes: {idle: -1s}", "no duration"},
		{"processes: {max: many}", "1:18"},
		{"processes: {max: 0}", "processes.max is 0; it is 1 to 4096"},
		{"ledger: {tools: sometimes}", "ledger.tools is"},
		{"limits: {frame_bytes: 100000000}", "limits.frame_bytes"},
		{"policy: {allow: [{kinds: [tol]}]}", `"tol" is no kind`},
		{"a: [", "1:"},
		{"- a", "1:"},
		{"tenant: ''", "not empty"},
		{"bindings: [{plugin_id: a}, {plugin_id: a}]", "bound twice"},
		{"egress: {loopbak: [a]}", "loopbak"},
		{"egress: {loopback: [a, 'b c']}", `egress.loopback: "b c" is no name of a plugin`},
		{"egress: {hosts: {'b c': [a.example]}}", `egress.hosts: "b c" is no name of a plugin`},
		{"egress: {hosts: {mail: ['*.example.com']}}", "egress.hosts of mail: "},
		{"egress: {map: {.example.com: '127.0.0.1:1'}}", "not the plain name of one host"},
		{"egress: {map: {'a.example:443': '127.0.0.1:1'}}", "not the plain name of one host"},
		{"egress: {map: {'https://a.example': '127.0.0.1:1'}}", "write the name alone"},
		{"egress: {map: {a.example: localhost}}", "not of the form 127.0.0.1:9443"},
		{"egress: {map: {a.example: '127.0.0.1:0'}}", "not of the form"},
		{"log: {level: loud}\nledger: {tools: x}", "ledger.tools"},
	} {
		if _, err := config.Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q in it", c.text, err, c.want)
		}
	}
}

func TestARelativeProgramIsBesideTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, config.FileName)
	text := "bindings: [{plugin_id: a, command: [bin/a, ./x]}, {plugin_id: b, command: [b]}]"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Bindings[0].Command; got[0] != filepath.Join(dir, "bin/a") || got[1] != "./x" || c.Bindings[1].Command[0] != "b" {
		t.Errorf("%v %v", got, c.Bindings[1].Command)
	}
	if _, err := config.Load(filepath.Join(dir, "absent.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
