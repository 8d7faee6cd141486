package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
)

// program is the command line, in a process of its own.
func program(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"program"}, args...)...)
	cmd.Env = append(append(os.Environ(), "MORTISE_HOME="+t.TempDir(), "MORTISE_CONFIG=", "MORTISE_SERVER=", "MORTISE_AS=", "MORTISE_TOKEN="), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// The official client starts the program: with the host in it, or with one at a URL, which is
// asked as the principal of a token. Both answer as /mcp does, on each revision.
func TestTheProgramOnItsStandardStreams(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run read", "desk/*")
	home := t.TempDir()
	b.write(filepath.Join(home, "mortise.yaml"), "sandbox: \"off\" # it runs the test binary\n")
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.Mkdir(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.write(filepath.Join(plain, "manifest.yaml"), fmt.Sprintf("name: many\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, many, \"2\"]}\n", self))
	if err := program(t, []string{"MORTISE_HOME=" + home}, "plugins", "register", plain).Run(); err != nil {
		t.Fatal(err)
	}
	for _, revision := range revisions {
		for _, c := range []struct {
			name, tool, arguments, want string
			env                         []string
		}{
			{"embedded", "many.t0001", `{}`, `{"n":1}`, []string{"MORTISE_HOME=" + home}},
			{"url", "desk.upper", `{"text":"a"}`, `{"text":"A"}`, []string{"MORTISE_SERVER=" + b.url, "MORTISE_TOKEN=" + token}},
		} {
			t.Run(revision+" "+c.name, func(t *testing.T) {
				s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
					&sdk.CommandTransport{Command: program(t, c.env, "mcp", "--list", "all")}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if got := names(t, s); !slices.Contains(got, c.tool) || !slices.Contains(got, "mortise.call_result") {
					t.Errorf("the tools are %q", got)
				}
				res, said, _ := call(t, s, c.tool, c.arguments)
				if res.IsError || said != c.want {
					t.Errorf("%s answers %q", c.tool, said)
				}
				if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "desk.absent"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
					t.Errorf("a tool that there is not: %v", err)
				}
			})
		}
	}
}

// Standard output has the protocol and nothing else, whatever comes in, and what was asked is
// answered before the program ends with its input.
func TestStandardOutputIsTheProtocol(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	token := b.token("ann", "run")
	begins := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for name, c := range map[string]struct {
		in  string
		env []string
		ids []string // of the answers
	}{
		"at a URL":                    {begins + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"desk.upper","arguments":{"text":"a"}}}` + "\n", []string{"MORTISE_SERVER=" + b.url, "MORTISE_TOKEN=" + token}, []string{"1", "2"}},
		"embedded":                    {begins + `{"jsonrpc":"2.0","id":"two","method":"tools/list"}` + "\n", nil, []string{"1", `"two"`}},
		"what is no JSON":             {"hello\n\n[1\n" + begins, nil, []string{"null", "null", "1"}},
		"a token that is none for it": {begins, []string{"MORTISE_SERVER=" + b.url, "MORTISE_TOKEN=" + b.token("ann", "read")}, []string{"1"}},
		"nothing":                     {"", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := program(t, c.env, "mcp")
			cmd.Stdin = strings.NewReader(c.in)
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Run(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			var ids []string
			lines := bufio.NewScanner(&out)
			for lines.Scan() {
				var m struct {
					JSONRPC string          `json:"jsonrpc"`
					ID      json.RawMessage `json:"id"`
				}
				if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
					t.Fatalf("it writes %q", lines.Text())
				}
				ids = append(ids, string(m.ID))
			}
			if !slices.Equal(ids, c.ids) {
				t.Errorf("it answers %q, want %q", ids, c.ids)
			}
		})
	}
}

// forwarded passes lines on to a host at a URL, as mortise mcp does, and returns the answers by the
// literal of their id. lose reports whether the answer to a request is lost on its way back.
func (b *bench) forwarded(token, in string, lose func(header http.Header, body []byte) bool) map[string][]string {
	b.Helper()
	var out bytes.Buffer
	err := mcp.Forward(b.Context(), strings.NewReader(in), &out, func(ctx context.Context, header http.Header, body []byte) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/mcp", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header = header.Clone()
		res, err := bearer(token).RoundTrip(r)
		if err == nil && lose != nil && lose(header, body) {
			_, _ = io.Copy(io.Discard, res.Body) // the host has answered
			res.Body.Close()
			return nil, errors.New("the connection broke")
		}
		return res, err
	})
	if err != nil {
		b.Fatal(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	answers := map[string][]string{}
	for answer := range strings.Lines(out.String()) {
		var m struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(answer), &m); err != nil {
			b.Fatalf("it writes %q", answer)
		}
		answers[string(m.ID)] = append(answers[string(m.ID)], answer)
	}
	return answers
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

func lineCall(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"desk.line","arguments":{"text":"` + text + `"}}}` + "\n"
}

// Each request is answered once, under the literal of its id, however large the number is and
// however it is spelled; and ids that one number of the host would hold do not meet.
func TestIDsKeepTheirLiteral(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	ids := []string{
		"0.0", "-1", "1.5", "1e3", "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
		"1" + strings.Repeat("0", 200), "-18446744073709551616", `"9223372036854775808"`, `""`, `"\u00e9"`, `"é"`, `"` + strings.Repeat("x", 200) + `"`,
	}
	in := initialize
	for i, id := range ids {
		in += fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"desk.upper","arguments":{"text":"n%d"}}}`+"\n", id, i)
	}
	answers := b.forwarded(b.token("ann", "run"), in, nil)
	for i, id := range ids {
		if got := answers[id]; len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf(`N%d\"`, i)) {
			t.Errorf("%s is answered %q, want one answer with N%d", id, got, i)
		}
	}
	if len(answers) != len(ids)+1 {
		t.Errorf("%d ids are answered, want %d", len(answers), len(ids)+1)
	}
	for _, id := range []string{"null", "true", "[1]", `{"a":1}`, `"` + strings.Repeat("x", 300) + `"`} {
		if got := b.forwarded(b.token("ann", "run"), lineCall(id, "never"), nil); len(got) != 1 || len(got["null"]) != 1 {
			t.Errorf("%.40s is answered %q, want one error", id, got)
		}
	}
	if b.lines() != "" {
		t.Errorf("it wrote %q", b.lines())
	}
}

// A message that is too long is answered with an error under its id, wherever the id stands, and
// what comes after it is answered too.
func TestAMessageThatIsTooLongIsAnswered(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	long := strings.Repeat(`x\"{[`, 2<<20)
	for first, id := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":1,"arguments":{"text":"` + long + `"}}}`: "7",
		`{"params":{"id":1,"arguments":{"text":"` + long + `","id":2}},"method":"tools/call", "id" : "a\"b" }`: `"a\"b"`,
		`{"method":"x","params":["` + long + `",{"id":3}],"id":18446744073709551616,"jsonrpc":"2.0"}`:          "18446744073709551616",
		`{"method":"x","params":"` + long + `"}`:                                                               "null",
		`{"id":{"id":4},"params":"` + long + `"}`:                                                              "null",
		long: "null",
	} {
		answers := b.forwarded(b.token("ann", "run"), first+"\n"+initialize, nil)
		if got := answers[id]; len(got) != 1 || !strings.Contains(got[0], "-32600") || !strings.Contains(got[0], "more than 5 MiB") || len(answers["0"]) != 1 || len(answers) != 2 {
			t.Errorf("%.60s... %.40s is answered %q", first, first[len(first)-30:], answers)
		}
	}
}

// A request whose answer is lost is sent again, and its effect happens once: whatever revision,
// and however often the answer is lost, within the attempts that there are.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for lost := range 4 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			b := begin(t, mcp.Options{})
			var mu sync.Mutex
			keys, left := map[string]int{}, lost
			answers := b.forwarded(b.token("ann", "run"), initialize+lineCall("1", "one")+lineCall("2", "two"), func(header http.Header, body []byte) bool {
				mu.Lock()
				defer mu.Unlock()
				keys[header.Get(mcp.KeyHeader)]++
				if !bytes.Contains(body, []byte(`"one"`)) || left == 0 {
					return false
				}
				left--
				return true
			})
			got := strings.Fields(b.lines())
			slices.Sort(got)
			if !slices.Equal(got, []string{"one", "two"}) {
				t.Errorf("with %d answers lost the effects are %q, want each once", lost, got)
			}
			if len(answers["1"]) != 1 || strings.Contains(answers["1"][0], `"error"`) != (lost >= 3) || len(answers["2"]) != 1 {
				t.Errorf("the answers are %q", answers)
			}
			if len(keys) != 3 { // "" of what is no call
				t.Errorf("the keys are %v, want one for each call", keys)
			}
		})
	}
}

// The key of a request does not keep a call from joining the one that waits for a person.
func TestARequestWithAKeyJoinsTheCallThatWaits(t *testing.T) {
	t.Parallel()
	b := begin(t, mcp.Options{})
	for range 3 {
		answers := b.forwarded(b.token("ann", "run"), initialize+strings.Replace(lineCall("1", "g"), "desk.line", "desk.gated", 1), nil)
		if len(answers["1"]) != 1 || !strings.Contains(answers["1"][0], "pending_approval") {
			t.Errorf("the answer is %q", answers["1"])
		}
	}
	calls, err := b.app.Host.As(root).Calls().List(t.Context(), host.CallFilter{Operation: "desk/gated"})
	if err != nil || len(calls) != 1 {
		t.Errorf("%d calls wait, want 1: %v", len(calls), err)
	}
}
