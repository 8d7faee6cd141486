package rest_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/exchange"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// A sink is a collector of OTLP over HTTP.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*spans.Span
	text bytes.Buffer // of all requests, as they came
}

func collect(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var in collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &in)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.text.Write(raw)
		for _, of := range in.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				s.got = append(s.got, scope.Spans...)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// tree returns the spans of a trace below one, a line each, indented; those that have the
// same parent in the order in which they began.
func (s *sink) tree(trace, parent, indent string) string {
	var below []*spans.Span
	for _, span := range s.got {
		if hex.EncodeToString(span.TraceId) == trace && hex.EncodeToString(span.ParentSpanId) == parent {
			below = append(below, span)
		}
	}
	slices.SortFunc(below, func(a, b *spans.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	text := ""
	for _, span := range below {
		text += indent + span.Name + "\n" + s.tree(trace, hex.EncodeToString(span.SpanId), indent+"  ")
	}
	return text
}

// A request makes one trace: of the request, the call, its stages and what the plugin does
// below it.
func TestACallIsOneTrace(t *testing.T) {
	t.Parallel()
	s := collect(t)
	b := beginWith(t, rest.Options{}, "telemetry: {traces: '"+s.URL+"'}\n", app.Options{Standby: true})
	const trace, outside = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	from := []string{"Traceparent", "00-" + trace + "-" + outside + "-01"}
	got := b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/traced:execute", `{"input":{},"fresh":true}`, from...), 200, "succeeded")
	b.is(b.execute("mrt_ann", "line", "one", from...), 200, "succeeded")
	for _, refused := range []answer{
		b.is(b.execute("mrt_ann", "denied", "one", from...), 403, "policy_denied"),
		b.is(b.execute("mrt_ann", "canary-no-such-operation", "one", from...), 404, "not_found"),
	} {
		if refused.at("trace_id") != trace {
			t.Errorf("a problem is of the trace %v", refused.at("trace_id"))
		}
	}
	parts := strings.Split(fmt.Sprint(got.at("data", "traceparent")), "-")
	if err := b.app.Telemetry.Close(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	const want = `POST /api/v1/operations/{plugin}/{operation}:execute
  execute_tool desk/traced
    mortise.validate
    mortise.authorize
    mortise.claim
    mortise.run
    mortise.settle
POST /api/v1/operations/{plugin}/{operation}:execute
  execute_tool desk/line
    mortise.validate
    mortise.authorize
    mortise.claim
    mortise.run
    mortise.settle
POST /api/v1/operations/{plugin}/{operation}:execute
  execute_tool desk/denied
    mortise.validate
    mortise.authorize
    mortise.settle
POST /api/v1/operations/{plugin}/{operation}:execute
  execute_tool
    mortise.settle
`
	if tree := s.tree(trace, outside, ""); tree != want {
		t.Errorf("%s", tree)
	}
	if len(parts) != 4 || parts[1] != trace || !slices.ContainsFunc(s.got, func(span *spans.Span) bool {
		return hex.EncodeToString(span.SpanId) == parts[2] && span.Name == "execute_tool desk/traced"
	}) {
		t.Errorf("the plugin heard %v", parts)
	}
	if bytes.Contains(s.text.Bytes(), []byte("canary")) || bytes.Contains(s.text.Bytes(), []byte("mrt_ann")) {
		t.Error("what a caller wrote is in the traces")
	}
}

// A call that is taken up later goes on in the trace that asked for it.
func TestACallThatWaitsStaysInItsTrace(t *testing.T) {
	t.Parallel()
	s := collect(t)
	b := beginWith(t, rest.Options{}, "telemetry: {traces: '"+s.URL+"'}\n", app.Options{Standby: true})
	const trace, outside = "0af7651916cd43dd8448eb211c80319d", "b7ad6b7169203332"
	asked := b.is(b.execute("mrt_ann", "gated", "one", "Traceparent", "00-"+trace+"-"+outside+"-01"), 202, "pending_approval")
	b.decide(fmt.Sprint(asked.at("approval", "id")), true)
	if _, err := b.app.Kernel.Await(t.Context(), "local", fmt.Sprint(asked.at("call_id"))); err != nil {
		t.Fatal(err)
	}
	if err := b.app.Telemetry.Close(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	const want = `POST /api/v1/operations/{plugin}/{operation}:execute
  execute_tool desk/gated
    mortise.validate
    mortise.authorize
    mortise.claim
    mortise.settle
    execute_tool desk/gated
      mortise.validate
      mortise.authorize
      mortise.claim
      mortise.run
      mortise.settle
`
	if tree := s.tree(trace, outside, ""); tree != want {
		t.Errorf("%s", tree)
	}
}

// A collector that never answers holds nothing up, and is complained of once.
func TestADeadCollectorHoldsNoCallUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // it is connected to, and nothing is read there
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log lockedBuffer
	b := beginWith(t, rest.Options{}, "telemetry: {traces: 'http://"+l.Addr().String()+"'}\n", app.Options{Standby: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 3000 { // more spans than the queue has room for
		if a := b.ask("mrt_reader", "GET", "/api/v1/plugins/desk", ""); a.status != 200 {
			t.Fatalf("request %d: %s", i, a)
		}
	}
	begun := time.Now()
	if err := b.app.Telemetry.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("closing took %s", took)
	}
}

// Metrics are for who may see them, and have a bounded number of labels whatever callers
// write.
func TestMetricsAreBoundedAndGuarded(t *testing.T) {
	t.Parallel()
	b := beginWith(t, rest.Options{}, "telemetry: {metrics: true}\n", app.Options{Standby: true})
	b.is(b.execute("mrt_ann", "upper", "one"), 200, "succeeded")
	b.is(b.execute("mrt_ann", "fail", "one"), 200, "failed")
	b.is(b.execute("mrt_ann", "gated", "one"), 202, "pending_approval")
	b.decide(fmt.Sprint(b.execute("mrt_ann", "gated", "two").at("approval", "id")), true)
	for i := range 200 {
		b.is(b.execute("mrt_ann", fmt.Sprintf("canary-%d", i), "one"), 404, "")
		b.ask("mrt_ann", "GET", fmt.Sprintf("/api/v1/canary-%d", i), "")
	}
	b.is(b.ask("", "GET", "/metrics", ""), 401, "unauthenticated")
	b.is(b.ask("mrt_none", "GET", "/metrics", ""), 403, "scope_denied")
	b.is(b.ask("mrt_ann", "GET", "/metrics", ""), 403, "policy_denied")
	b.is(b.ask("mrt_root", "POST", "/metrics", ""), 405, "invalid_input")
	got := b.ask("mrt_root", "GET", "/metrics", "")
	for _, want := range []string{
		`mortise_calls_waiting{mortise_status="pending_approval",mortise_tenant="local"} 1`, `mortise_ledger_unwritten`, `mortise_approval_wait_duration_seconds_count{mortise_decision="approved",mortise_tenant="local"} 1`,
		`mortise_calls_total{gen_ai_tool_name="desk/upper",mortise_tenant="local",outcome="succeeded"} 1`, `mortise_calls_total{gen_ai_tool_name="desk/fail",mortise_tenant="local",outcome="plugin_error"} 1`,
		`mortise_calls_total{gen_ai_tool_name="unknown",mortise_tenant="local",outcome="not_found"} 200`, `http_route="none"`,
	} {
		if !strings.Contains(got.text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if lines := strings.Count(got.text, "\n"); got.status != 200 || strings.Contains(got.text, "canary") || lines > 300 {
		t.Errorf("%d, %d lines: %s", got.status, lines, got.text)
	}
	if entries, _, err := b.app.As(person("root")).Ledger().List(t.Context(), host.EntryQuery{Kind: "metrics.refused"}); err != nil || len(entries) != 1 {
		t.Errorf("%d refusals are on record, %v", len(entries), err)
	}
}

// Without a setting there are no metrics, and no such path.
func TestMetricsAreOffByDefault(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	b.is(b.ask("mrt_root", "GET", "/metrics", ""), 404, "not_found")
	if b.app.Telemetry != nil {
		t.Error("telemetry is on")
	}
}

// docs/telemetry.md shows the spans of a call, all metrics and its exchanges as they are.
func TestThePageOfTelemetryIsTrue(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	s := collect(t)
	b := beginWith(t, rest.Options{}, "telemetry: {traces: '"+s.URL+"', metrics: true}\n", app.Options{Standby: true})
	const trace, outside = "0af7651916cd43dd8448eb211c80319e", "b7ad6b7169203333"
	b.is(b.ask("mrt_ann", "POST", "/api/v1/operations/desk/traced:execute", `{"input":{}}`, "Traceparent", "00-"+trace+"-"+outside+"-01"), 200, "succeeded")
	b.decide(fmt.Sprint(b.execute("mrt_ann", "gated", "two").at("approval", "id")), true)
	for line := range strings.Lines(b.ask("mrt_root", "GET", "/metrics", "").text) {
		_, rest, ok := strings.Cut(line, "# TYPE ")
		if !ok {
			continue
		}
		if name, _, _ := strings.Cut(rest, " "); name != "target_info" && !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("the page has no %s", name)
		}
	}
	all, err := exchange.Read("../../../docs/telemetry.md")
	if err != nil || len(all) != 3 {
		t.Fatalf("the page has %d exchanges, %v", len(all), err)
	}
	known := exchange.Values{"ANN": "mrt_ann", "OPS": "mrt_root"}
	for _, e := range all {
		for i := range e.Headers {
			e.Headers[i] = strings.Replace(known.Fill(e.Headers[i]), outside, "b7ad6b7169203334", 1) // the tree below is of the first request
		}
		a := b.ask("", e.Method, e.Path, e.Body, e.Headers...)
		if at := known.Differs(e, a.status, a.header.Values, a.text); at != "" {
			t.Errorf("docs/telemetry.md:%d: %s: %s", e.Line, at, a)
		}
	}
	if err := b.app.Telemetry.Close(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, shown, _ := strings.Cut(page, "```text\n")
	shown, _, _ = strings.Cut(shown, "```")
	if tree := s.tree(trace, outside, ""); tree != shown {
		t.Errorf("the page shows\n%s, and it is\n%s", shown, tree)
	}
}
