package secret

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Tokens of a host's API begin with TokenPrefix, and match TokenPattern. Its groups are what
// may be told of one, and what may not.
const (
	TokenPrefix  = "mrt_"
	TokenPattern = `(mrt_[ush][0-9A-Za-z]{10}_)([0-9A-Za-z]{32}_[0-9A-Za-z]{6})`
)

var tokens = pattern.New(TokenPattern)

// Untold returns a text with the ids alone of tokens of the API, which are in it by a
// mistake of who asked: such as in the path of a request.
func Untold(text string) string {
	if !strings.Contains(text, TokenPrefix) {
		return text
	}
	return tokens.ReplaceAllString(text, "${1}...")
}

// Handler returns a handler that passes records on without secrets.
func (s *Scrubber) Handler(next slog.Handler) slog.Handler { return &handler{next, s} }

type handler struct {
	slog.Handler
	s *Scrubber
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.s.told(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool { clean.AddAttrs(h.s.attr(a)); return true })
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.s.attr(a)
	}
	return &handler{h.Handler.WithAttrs(clean), h.s}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.s}
}

// told is a text as the log has it.
func (s *Scrubber) told(text string) string {
	if text = Untold(text); s.idle() {
		return text
	}
	return s.Text(text)
}

func (s *Scrubber) attr(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		return slog.String(s.told(a.Key), s.told(value.String()))
	case slog.KindGroup:
		var clean []any
		for _, member := range value.Group() {
			clean = append(clean, s.attr(member))
		}
		return slog.Group(s.told(a.Key), clean...)
	case slog.KindAny:
		// What it is written as is the handler's to choose; where that is without
		// secrets it stays what it is.
		text := fmt.Sprintf("%+v", value.Any())
		if raw, ok := value.Any().([]byte); ok {
			text = string(raw)
		}
		if clean := s.told(text); clean != text {
			return slog.String(s.told(a.Key), clean)
		}
	}
	a.Key = s.told(a.Key)
	return a
}
