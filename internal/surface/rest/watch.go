package rest

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/base/telemetry"
	"github.com/mortise-dev/mortise/internal/host"
)

// MetricsPath is where metrics are answered, in the text format of Prometheus.
const MetricsPath = "/metrics"

// An answer is what is written for a request, counted.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Unwrap lets an [http.ResponseController] reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// watch begins to watch a request. over must be called once it is answered: it tells the
// telemetry, and at level info the log.
func (s *server) watch(to http.ResponseWriter, q *request) (w *answer, over func()) {
	begun := time.Now()
	ctx, told := s.Telemetry.Request(q.Request)
	q.Request = q.WithContext(ctx)
	w = &answer{ResponseWriter: to}
	return w, func() {
		told.End(q.route, w.status)
		if s.Log.Enabled(ctx, slog.LevelInfo) {
			s.Log.InfoContext(ctx, "a request was answered", "method", q.Method, "path", q.URL.Path, "status", w.status, "bytes", w.bytes, "took", time.Since(begun),
				"request_id", q.id, "trace_id", telemetry.TraceID(ctx), "principal", q.caller.Principal.Member(), "token", q.caller.Token, "from", q.RemoteAddr)
		}
	}
}

// metrics answers with all metrics, for who may see them.
func (s *server) metrics(w http.ResponseWriter, q *request) (err error) {
	q.route = MetricsPath
	if err := s.addressed(q.Request); err != nil {
		return err
	}
	if q.caller, err = s.authenticate(q.Request); err != nil {
		return err
	}
	if err := s.often(&q.caller); err != nil {
		return err
	}
	if err := holds(q.caller, host.ScopeRead); err != nil {
		return err
	}
	if err := s.Host.For(q.caller).Admin().MayWatch(q.Context()); err != nil {
		return err
	}
	if q.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		return refused(http.StatusMethodNotAllowed, "invalid_input", MetricsPath+" answers GET alone")
	}
	s.Telemetry.Metrics().ServeHTTP(w, q.Request)
	return nil
}
