package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() {
	commands["model"] = model
	commands["heard"] = heard
}

// talkers are the models of the stories, by the story's place.
var talkers sync.Map

// A talker is a server that speaks chat completions and says what the lines of a
// story's file tell it to, in their order:
//
//	say TEXT        answers
//	use NAME ARGS   asks for a tool
//	slow TEXT       says half of it, and the rest never
type talker struct {
	*httptest.Server
	mu    sync.Mutex
	lines []string
	asked []string
	gone  chan struct{}
}

// model gives the story's model more to say, from a file. With a configuration
// too, it starts the model and has $MODEL in the configuration stand for where.
func model(ts *testscript.TestScript, _ bool, args []string) {
	t := talkerOf(ts)
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.SplitSeq(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		t.lines = append(t.lines, line)
	}
	if len(args) > 1 {
		path := ts.MkAbs(args[1])
		ts.Check(os.WriteFile(path, []byte(strings.ReplaceAll(ts.ReadFile(args[1]), "$MODEL", t.URL)), 0o600))
	}
}

// heard shows what the story's model was asked since the last time, on standard
// output.
func heard(ts *testscript.TestScript, _ bool, _ []string) {
	t := talkerOf(ts)
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(ts.Stdout(), strings.Join(t.asked, "\n"))
	t.asked = nil
}

func talkerOf(ts *testscript.TestScript) *talker {
	place := ts.Getenv("WORK")
	if known, found := talkers.Load(place); found {
		return known.(*talker)
	}
	t := &talker{gone: make(chan struct{})}
	t.Server = httptest.NewServer(t)
	talkers.Store(place, t)
	ts.Defer(func() { close(t.gone); t.Close(); talkers.Delete(place) })
	return t
}

func (t *talker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	t.mu.Lock()
	t.asked = append(t.asked, string(raw))
	n, line := len(t.asked), "say I have nothing more to say."
	if len(t.lines) > 0 {
		line, t.lines = t.lines[0], t.lines[1:]
	}
	t.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta any, reason string) {
		text, _ := json.Marshal(delta)
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", text, reason)
		w.(http.Flusher).Flush()
	}
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "use":
		name, args, _ := strings.Cut(rest, " ")
		send(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("use_%d", n), "type": "function", "function": map[string]any{"name": name, "arguments": args}}}}, "null")
		send(map[string]any{}, `"tool_calls"`)
	case "slow":
		send(map[string]any{"role": "assistant", "content": rest}, "null")
		select {
		case <-t.gone:
		case <-r.Context().Done():
		}
		return
	default:
		for _, word := range strings.SplitAfter(rest, " ") {
			send(map[string]any{"role": "assistant", "content": word}, "null")
		}
		send(map[string]any{}, `"stop"`)
	}
	fmt.Fprint(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10,\"total_tokens\":110}}\n\ndata: [DONE]\n\n")
}
