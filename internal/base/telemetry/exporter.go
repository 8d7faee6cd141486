package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// An exporter sends spans, and complains to the host's log where they do not arrive.
type exporter struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu   sync.Mutex
	said time.Time
	lost int // spans since then
}

func complaining(to sdktrace.SpanExporter, log *slog.Logger) sdktrace.SpanExporter {
	return &exporter{SpanExporter: to, log: log}
}

// ExportSpans implements [sdktrace.SpanExporter]. It returns nil also where it failed: it
// has been said, and the SDK would print it to standard error.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += len(spans)
	if now := time.Now(); now.Sub(e.said) >= complainAt {
		e.log.Warn("traces were lost: the collector did not take them", "spans", e.lost, "cause", err.Error())
		e.said, e.lost = now, 0
	}
	return nil
}
