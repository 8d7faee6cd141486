package secret

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a handler that passes records on without secrets.
func (s *Scrubber) Handler(next slog.Handler) slog.Handler { return &handler{next, s} }

type handler struct {
	slog.Handler
	s *Scrubber
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if h.s.idle() {
		return h.Handler.Handle(ctx, r)
	}
	clean := slog.NewRecord(r.Time, r.Level, h.s.Text(r.Message), r.PC)
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

func (s *Scrubber) attr(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		return slog.String(s.Text(a.Key), s.Text(value.String()))
	case slog.KindGroup:
		var clean []any
		for _, member := range value.Group() {
			clean = append(clean, s.attr(member))
		}
		return slog.Group(s.Text(a.Key), clean...)
	case slog.KindAny:
		// What it is written as is the handler's to choose; where that is without
		// secrets it stays what it is.
		text := fmt.Sprintf("%+v", value.Any())
		if raw, ok := value.Any().([]byte); ok {
			text = string(raw)
		}
		if clean := s.Text(text); clean != text {
			return slog.String(s.Text(a.Key), clean)
		}
	}
	a.Key = s.Text(a.Key)
	return a
}
