package setup

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// LogLevel returns a level as the configuration writes it.
func LogLevel(name string) slog.Level {
	return map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warning": slog.LevelWarn, "error": slog.LevelError}[name]
}

// NewLog returns the host's own log, on standard error. It has what is of level or above,
// which may change.
func NewLog(c config.Log, level slog.Leveler, brief bool) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	switch {
	case c.Format == "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	case brief:
		return slog.New(&briefHandler{level: level, mu: new(sync.Mutex), w: os.Stderr})
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}

// A briefHandler writes a record as one line for a person: the level and the
// message in the columns in which the command line shows what plugins log, then
// the attributes. What every record of one command has in common is left out.
type briefHandler struct {
	level slog.Leveler
	attrs []slog.Attr

	mu *sync.Mutex // guards w
	w  io.Writer
}

// common are attributes that tell a person at a command line nothing.
var common = []string{"tenant", "correlation_id", "call_id", "time"}

func (h *briefHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

func (h *briefHandler) Handle(_ context.Context, r slog.Record) error {
	level := strings.ToLower(r.Level.String())
	if r.Level == slog.LevelWarn {
		level = "warning"
	}
	line := fmt.Sprintf("%-7s %s", level, r.Message)
	write := func(a slog.Attr) bool {
		if !slices.Contains(common, a.Key) {
			line += fmt.Sprintf(" %s=%v", a.Key, a.Value.Resolve())
		}
		return true
	}
	for _, a := range h.attrs {
		write(a)
	}
	r.Attrs(write)
	line = strings.Map(func(r rune) rune { // a terminal obeys control characters
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, line+"\n")
	return err
}

func (h *briefHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &briefHandler{level: h.level, attrs: slices.Concat(h.attrs, attrs), mu: h.mu, w: h.w}
}

// WithGroup is not used by the host; its attributes keep their plain names.
func (h *briefHandler) WithGroup(string) slog.Handler { return h }
