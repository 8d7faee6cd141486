// Package telemetry tells those who run a host what it does, by OpenTelemetry: a trace for
// each call, and metrics.
//
// It says when, how long and with which outcome, and never what: no input, no output, no
// text that a caller chose is in a span or a metric. Each label of a metric has a bounded
// number of values. Spans that cannot be sent are dropped, so a collector that is slow or
// gone holds no call up.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"go.opentelemetry.io/otel/attribute"
)

// Options say what is told, and to whom. Nothing is told where both are zero.
type Options struct {
	Traces  string  // the URL of a collector of OTLP over HTTP; "environment" takes it from the variables OTEL_EXPORTER_OTLP_*; "" for no traces
	Sample  float64 // the share of traces that begin here and are sent, 0 to 1
	Metrics bool

	Site string // the site's own tenant

	// Waiting returns how many calls of each tenant are in each state that does not pass by
	// itself, and Unwritten how many entries the ledger has yet to write. Both are asked when
	// metrics are read.
	Waiting   func(ctx context.Context) (map[string]map[string]int, error)
	Unwritten func() int

	Service string // its name and version in both
	Version string
	Log     *slog.Logger // what could not be sent, at most one line a minute
}

// Environment is the value of [Options.Traces] that leaves the collector to the variables
// of OpenTelemetry.
const Environment = "environment"

// Bounds of what waits to be sent.
const (
	queued     = 2048 // spans; more are dropped
	batch      = 512  // spans in one request
	sendTime   = 10 * time.Second
	flushTime  = time.Second // of the last, when the host ends
	complainAt = time.Minute
)

// A Telemetry tells about one host. Nil is one that tells nothing. It is safe for
// concurrent use.
type Telemetry struct {
	tracer  trace.Tracer
	traces  *sdktrace.TracerProvider // nil where none are sent
	metrics *sdkmetric.MeterProvider // nil where there are none
	shown   http.Handler             // of the metrics
	series  *series                  // by which calls are counted

	requests  metric.Float64Histogram
	calls     metric.Int64Counter
	durations metric.Float64Histogram
	approvals metric.Float64Histogram

	closed sync.Once
}

// Asked reports whether the environment names a collector, as OpenTelemetry has it.
func Asked() bool {
	return !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") &&
		(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "")
}

// Open begins to tell. It returns nil where nothing is to be told. Close must be called.
func Open(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Traces == "" && !o.Metrics {
		return nil, nil
	}
	about := resource.NewWithAttributes(SchemaURL, attribute.String("service.name", o.Service), attribute.String("service.version", o.Version))
	t := &Telemetry{tracer: noop.NewTracerProvider().Tracer(scope), series: newSeries(o.Site)}
	if o.Traces != "" {
		var to []otlptracehttp.Option
		if o.Traces != Environment {
			to = append(to, otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Traces, "/")+"/v1/traces"))
		}
		exporter, err := otlptracehttp.New(ctx, append(to, otlptracehttp.WithTimeout(sendTime))...)
		if err != nil {
			return nil, fmt.Errorf("the collector of traces cannot be used: %w", err)
		}
		t.traces = sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(complaining(exporter, o.Log), sdktrace.WithMaxQueueSize(queued), sdktrace.WithMaxExportBatchSize(batch), sdktrace.WithExportTimeout(sendTime)),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Sample))), sdktrace.WithResource(about))
		t.tracer = t.traces.Tracer(scope, trace.WithInstrumentationVersion(o.Version), trace.WithSchemaURL(SchemaURL))
	}
	return t, t.measure(o, about)
}

// measure makes the instruments; nothing reads them where there are no metrics.
func (t *Telemetry) measure(o Options, about *resource.Resource) error {
	options := []sdkmetric.Option{sdkmetric.WithCardinalityLimit(maxSeries)}
	if o.Metrics {
		registry := prometheus.NewRegistry()
		reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		t.shown = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
		options = append(options, sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
	}
	t.metrics = sdkmetric.NewMeterProvider(options...)
	m := t.metrics.Meter(scope, metric.WithInstrumentationVersion(o.Version), metric.WithSchemaURL(SchemaURL))
	var errs [5]error
	seconds := []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	waits := []float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
	t.requests, errs[0] = m.Float64Histogram(metricRequests, metric.WithUnit("s"), metric.WithDescription("How long requests took."), metric.WithExplicitBucketBoundaries(seconds...))
	t.calls, errs[1] = m.Int64Counter(metricCalls, metric.WithDescription("Attempts of calls that ended or were put aside."))
	t.durations, errs[2] = m.Float64Histogram(metricDurations, metric.WithUnit("s"), metric.WithDescription("How long attempts of calls took."), metric.WithExplicitBucketBoundaries(seconds...))
	t.approvals, errs[3] = m.Float64Histogram(metricApprovals, metric.WithUnit("s"), metric.WithDescription("How long approvals waited for their decision."), metric.WithExplicitBucketBoundaries(waits...))
	errs[4] = t.observe(m, o)
	return errors.Join(errs[:]...)
}

// observe makes the instruments that are read when metrics are.
func (t *Telemetry) observe(m metric.Meter, o Options) error {
	waiting, err := m.Int64ObservableGauge(metricWaiting, metric.WithDescription("Calls that are queued, wait for an approval, or whose outcome is unknown; at most 1000 of each are counted."))
	unwritten, err2 := m.Int64ObservableGauge(metricUnwritten, metric.WithDescription("Entries of the ledger that wait to be written."))
	if err = errors.Join(err, err2); err != nil || o.Waiting == nil {
		return err
	}
	_, err = m.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		to.ObserveInt64(unwritten, int64(o.Unwritten()))
		tenants, err := o.Waiting(ctx)
		for name, states := range tenants {
			for state, n := range states {
				to.ObserveInt64(waiting, int64(n), metric.WithAttributes(attrTenant.String(name), attrStatus.String(state)))
			}
		}
		return err
	}, waiting, unwritten)
	return err
}

// Metrics answers with all metrics, as Prometheus reads them. It is nil where there are
// none.
func (t *Telemetry) Metrics() http.Handler {
	if t == nil || t.shown == nil {
		return nil
	}
	return t.shown
}

// Close sends what waits, for a second at most, and ends.
func (t *Telemetry) Close() (err error) {
	if t == nil {
		return nil
	}
	t.closed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		if t.traces != nil {
			_ = t.traces.Shutdown(ctx) // what cannot be sent was logged
		}
		err = t.metrics.Shutdown(ctx)
	})
	return err
}

// ApprovalDecided counts how long an approval of a tenant waited. The verdict is approved,
// denied or expired.
func (t *Telemetry) ApprovalDecided(ctx context.Context, tenant, verdict string, waited time.Duration) {
	if t == nil {
		return
	}
	t.approvals.Record(ctx, waited.Seconds(), metric.WithAttributes(attrTenant.String(t.series.tenant(tenant)), attrDecision.String(verdict)))
}
