package terminal

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// A Watch shows what a call says while it runs: log lines as they come, and its progress
// as the status of a screen.
type Watch struct {
	Debug bool // show everything that is logged
	Quiet bool // leave out what a plugin logs below a warning, but not what it prints

	screen   *Screen
	progress *Progress

	mu   sync.Mutex
	last time.Time // when progress was shown
}

// Watch begins to watch a call. The caller ends it with End.
func (s *Screen) Watch(what string) *Watch { return &Watch{screen: s, progress: s.Begin(what)} }

// progressEvery is how often progress is shown.
const progressEvery = 100 * time.Millisecond

// Hear takes an event of the call.
func (w *Watch) Hear(e plugin.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case plugin.EventLog:
		logged := len(e.Data) > 0 // a line that was printed has no fields
		if !w.Debug && (e.Level == "debug" || e.Level == "info" && w.Quiet && logged) {
			return
		}
		text := fmt.Sprintf("%-7s %s", e.Level, e.Message)
		if len(e.Data) > 0 && string(e.Data) != "{}" && string(e.Data) != "null" {
			text += " " + string(e.Data)
		}
		fmt.Fprintln(w.screen, Safe(text))
	case plugin.EventContent:
		fmt.Fprintln(w.screen, Safe(string(e.Data)))
	case plugin.EventProgress:
		if now := time.Now(); now.Sub(w.last) >= progressEvery {
			w.last = now
			w.advance(e)
		}
	}
}

// advance shows the progress that a plugin reports.
func (w *Watch) advance(e plugin.Event) {
	var p struct {
		Message string         `json:"message"`
		Done    jsontext.Value `json:"done"`
		Total   jsontext.Value `json:"total"`
		Unit    string         `json:"unit"`
	}
	if json.Unmarshal(e.Data, &p) != nil {
		return
	}
	text, done, total := p.Message, number(p.Done), number(p.Total)
	switch {
	case total > 0:
		text = fmt.Sprintf("%s %3.0f%% of %s", text, 100*done/total, amount(p.Total, p.Unit))
	case done > 0:
		text = fmt.Sprintf("%s %s", text, amount(p.Done, p.Unit))
	}
	w.progress.Set(text, "")
	w.screen.Status(text)
}

// End takes the progress away.
func (w *Watch) End() { w.progress.End() }
