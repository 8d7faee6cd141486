package telemetry

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A Request is one request over HTTP while it is answered. Nil is one of which nothing is
// told.
type Request struct {
	of     *Telemetry
	ctx    context.Context
	span   trace.Span
	begun  time.Time
	method string
}

// Request begins the span of a request. Its parent is what the header traceparent names.
// A request of a telemetry that is nil is nil, and its context is the one that it had.
func (t *Telemetry) Request(r *http.Request) (context.Context, *Request) {
	if t == nil {
		return r.Context(), nil
	}
	q := &Request{of: t, begun: time.Now(), method: methodOf(r.Method)}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.MapCarrier{"traceparent": r.Header.Get("traceparent")}) // tracestate is text that a caller chose
	q.ctx, q.span = t.tracer.Start(ctx, q.method, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(q.begun), trace.WithAttributes(attrMethod.String(q.method)))
	return q.ctx, q
}

// End ends it. route is the pattern that it fitted, "" where it fitted none.
func (q *Request) End(route string, status int) {
	if q == nil {
		return
	}
	if route == "" {
		route = "none"
	}
	q.of.requests.Record(q.ctx, time.Since(q.begun).Seconds(), metric.WithAttributes(attrMethod.String(q.method), attrRoute.String(route), attrStatusCode.Int(status)))
	if q.span.IsRecording() {
		q.span.SetName(q.method + " " + route)
		q.span.SetAttributes(attrRoute.String(route), attrStatusCode.Int(status))
		if status >= http.StatusInternalServerError {
			q.span.SetStatus(codes.Error, http.StatusText(status))
		}
	}
	q.span.End()
}

// methodOf returns a method as metrics have it: one of those that there are.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// TraceID returns the id of the trace that ctx is in, "" where it is in none.
func TraceID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		return s.TraceID().String()
	}
	return ""
}
