package rest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// A turn of an agent is told as it happens, with signs of life while nothing is said, and
// its result is the answer that there is without a stream. It has no ids: it cannot be taken
// up again, and goes with its reader; the conversation has what was said and goes on.
func TestATurnIsStreamed(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{Beat: 10 * time.Millisecond, PerToken: 2})
	b.things()
	const at, talk = "/api/v1/agents/helper/conversations", "/api/v1/agents/helper/conversations:talk"
	gate := filepath.Join(t.TempDir(), "gate")
	f := b.followed("mrt_root", "POST", talk, fmt.Sprintf(`{"text":"hello wait:%s","fresh":true}`, gate), "Last-Event-ID", "1.2.00000000")
	for range 3 { // while the model thinks
		if e, err := f.next(); err != nil || e.name != "" || e.data != "" {
			t.Fatal(e, err)
		}
	}
	g := b.followed("mrt_root", "GET", "/api/v1/events", "")
	b.is(b.ask("mrt_root", "POST", talk, `{"text":"hello","fresh":true}`, "Accept", "text/event-stream"), 429, "rate_limited")
	g.leave()
	b.write(gate, "")
	said := f.event()
	if said.name != "text" || said.body["text"] != "Good day." || said.id != "" {
		t.Errorf("it begins with %s", said)
	}
	result := f.event()
	plain := b.is(b.ask("mrt_root", "POST", talk, `{"text":"hello","fresh":true}`), 200, "")
	if result.name != "result" || result.id != "" || len(result.body) != len(plain.body) || result.body["text"] != plain.at("text") || result.body["conversation"] == plain.at("conversation") {
		t.Errorf("it ends with %s, and is %s without a stream", result, plain)
	}
	if got := f.ends(); got != "" {
		t.Errorf("after that comes %q", got)
	}
	// Its reader goes: so does the turn, and the model is not waited for.
	gate = filepath.Join(t.TempDir(), "another")
	f = b.followed("mrt_root", "POST", talk, fmt.Sprintf(`{"text":"and then wait:%s","conversation":%q}`, gate, result.body["conversation"]))
	b.appears(gate + ".asked")
	f.leave()
	b.appears(gate + ".gone")
	b.write(gate, "")
	again := b.is(b.ask("mrt_root", "POST", talk, fmt.Sprintf(`{"text":"still there","conversation":%q}`, result.body["conversation"])), 200, "")
	shown := b.is(b.ask("mrt_root", "GET", fmt.Sprint(at, "/", result.body["conversation"]), ""), 200, "")
	if again.at("text") != "Good day." || !strings.Contains(shown.text, "and then wait:") || !strings.Contains(shown.text, "still there") {
		t.Errorf("%s, and the conversation is %s", again, shown)
	}
	// What is refused before the turn is answered without a stream.
	b.is(b.ask("mrt_ann", "POST", talk, `{"text":"hello"}`, "Accept", "text/event-stream"), 403, "policy_denied")
	b.is(b.ask("mrt_root", "POST", strings.Replace(talk, "helper", "nothing", 1), `{"text":"hello"}`, "Accept", "text/event-stream"), 404, "not_found")
}

// appears waits for a file.
func (b *bench) appears(path string) {
	b.Helper()
	testwait.Until(b, "there is a file "+path, func() bool { _, err := os.Stat(path); return err == nil })
}
