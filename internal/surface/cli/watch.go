package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	json2 "github.com/go-json-experiment/json"
	"golang.org/x/term"

	"github.com/mortise-dev/mortise/plugin"
)

// errSkip tells the JSON decoder to read a value in its own way.
var errSkip = errors.ErrUnsupported

// A watch shows on standard error what a call says while it runs: log lines as
// they come, and on a terminal a line of progress that is rewritten in place.
type watch struct {
	w        io.Writer
	terminal bool
	debug    bool
	quiet    bool // what a plugin logs below a warning is left out, and what it prints is not

	mu   sync.Mutex
	last time.Time
	line int // cells of the progress line that stands there
}

func (c *command) watch() *watch {
	return &watch{w: c.errs, terminal: isTerminal(c.errs), debug: c.debug}
}

// progressEvery is how often the progress line is rewritten.
const progressEvery = 100 * time.Millisecond

func (w *watch) hear(e plugin.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case plugin.EventLog:
		logged := len(e.Data) > 0 // a line that was printed has no fields
		if !w.debug && (e.Level == "debug" || e.Level == "info" && w.quiet && logged) {
			return
		}
		w.clear()
		text := fmt.Sprintf("%-7s %s", e.Level, e.Message)
		if len(e.Data) > 0 && string(e.Data) != "{}" && string(e.Data) != "null" {
			text += " " + string(e.Data)
		}
		fmt.Fprintln(w.w, safe(text))
	case plugin.EventContent:
		w.clear()
		fmt.Fprintln(w.w, safe(string(e.Data)))
	case plugin.EventProgress:
		if now := time.Now(); w.terminal && now.Sub(w.last) >= progressEvery {
			w.last = now
			w.progress(e)
		}
	}
}

// progress rewrites the line of progress.
func (w *watch) progress(e plugin.Event) {
	var p struct {
		Message string  `json:"message"`
		Done    float64 `json:"done"`
		Total   float64 `json:"total"`
		Unit    string  `json:"unit"`
	}
	if json2.Unmarshal(e.Data, &p) != nil {
		return
	}
	text := p.Message
	switch {
	case p.Total > 0:
		text = fmt.Sprintf("%s %3.0f%% of %s", text, 100*p.Done/p.Total, amount(p.Total, p.Unit))
	case p.Done > 0:
		text = fmt.Sprintf("%s %s", text, amount(p.Done, p.Unit))
	}
	text = oneLine(text, widthOf(w.w, 80)-1)
	w.clear()
	fmt.Fprint(w.w, text)
	w.line = cells(text)
}

func amount(n float64, unit string) string {
	if unit == "bytes" && n >= 1<<20 {
		return fmt.Sprintf("%.0f MiB", n/(1<<20))
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %s", n, unit))
}

// clear takes the progress line away.
func (w *watch) clear() {
	if w.line > 0 {
		fmt.Fprintf(w.w, "\r%s\r", strings.Repeat(" ", w.line))
		w.line = 0
	}
}

// end takes the progress line away for good.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clear()
}

// width returns how many characters fit on a line of standard output.
func (c *command) width() int {
	return max(40, widthOf(c.out, 120))
}

// widthOf returns how many characters fit on a line of a terminal, otherwise
// where it is none.
func widthOf(w any, otherwise int) int {
	if f, ok := under(w).(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return otherwise
}
