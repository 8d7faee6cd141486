package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-dev/mortise/plugin"
)

// A watched call is one attempt at a call: its span, and its stages so far.
type watchedCall struct {
	of     *Telemetry
	ctx    context.Context
	span   trace.Span
	tenant string
	begun  time.Time
	passed time.Time // when the last stage ended
}

// Call begins the span of an attempt at a call. Its parent is the span that the call
// came with, of the call that asked for it or of an earlier attempt, or else that of ctx.
// What its plugin does, and asks for, comes below it by the call's traceparent. passed is told of the end of each
// stage, and ended of the whole. A call of a telemetry that is nil needs none of it.
func (t *Telemetry) Call(ctx context.Context, call *plugin.Call) (inside context.Context, passed func(stage string), ended func(rec *plugin.CallRecord)) {
	if call.Trace.Parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": call.Trace.Parent})
	}
	w := &watchedCall{of: t, tenant: call.Tenant, begun: time.Now()}
	w.passed = w.begun
	w.ctx, w.span = t.tracer.Start(ctx, spanTool, trace.WithTimestamp(w.begun), trace.WithAttributes(
		attrOperation.String(spanTool), attrCallID.String(call.ID), attrTenant.String(call.Tenant), attrOrigin.String(string(call.Origin))))
	if w.span.SpanContext().IsValid() {
		to := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(w.ctx, to)
		call.Trace.Parent = to["traceparent"]
	}
	return w.ctx, w.stage, w.end
}

// stage ends a stage.
func (w *watchedCall) stage(name string) {
	now := time.Now()
	if w.span.IsRecording() {
		_, span := w.of.tracer.Start(w.ctx, spanStage+name, trace.WithTimestamp(w.passed))
		span.End(trace.WithTimestamp(now))
	}
	w.passed = now
}

// end ends the attempt, as its record says.
func (w *watchedCall) end(rec *plugin.CallRecord) {
	w.stage("settle")
	outcome := string(rec.Status)
	if rec.Error != nil {
		outcome = string(rec.Error.Code)
	}
	name, kind := "unknown", "unknown" // what is called so is what a caller wrote
	if rec.Plugin != "" {
		name, kind = rec.Operation, string(rec.Kind)
	}
	w.of.calls.Add(w.ctx, 1, w.of.series.labels(w.tenant, name, outcome))
	w.of.durations.Record(w.ctx, time.Since(w.begun).Seconds(), metric.WithAttributes(attrKind.String(kind)))
	if w.span.IsRecording() {
		w.describe(rec)
	}
	w.span.End(trace.WithTimestamp(w.passed))
}

// describe says in the span what became of the attempt.
func (w *watchedCall) describe(rec *plugin.CallRecord) {
	has := []attribute.KeyValue{attrStatus.String(string(rec.Status)), attrAttempt.Int64(rec.Attempt)}
	add := func(key attribute.Key, value string) {
		if value != "" {
			has = append(has, key.String(value))
		}
	}
	if rec.Plugin != "" {
		verb, named := spanTool, attrTool
		if rec.Kind == plugin.Agent {
			verb, named = spanAgent, attrAgent
		}
		w.span.SetName(verb + " " + rec.Operation)
		add(attrOperation, verb)
		add(named, rec.Operation)
		add(attrKind, string(rec.Kind))
		add(attrVersion, rec.Version)
		add(attrDigest, rec.PackageDigest)
	}
	if rec.Decision != nil {
		add(attrDecision, string(rec.Decision.Verdict))
		add(attrPolicy, rec.Decision.Policy)
	}
	add(attrIsolation, rec.Isolation)
	add(attrApproval, rec.Approval)
	if rec.Error != nil {
		add(attrErrorType, string(rec.Error.Code))
		w.span.SetStatus(codes.Error, string(rec.Error.Code))
	}
	w.span.SetAttributes(has...)
}
