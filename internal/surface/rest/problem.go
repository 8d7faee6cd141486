package rest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/telemetry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// codesPage is where the codes are defined; with the code as its fragment it is the type
// of a problem.
const codesPage = "https://github.com/mortise-dev/mortise/blob/main/docs/codes.md#"

// maxPlaces bounds the places of a problem.
const maxPlaces = 32

// A Problem is why a request was refused (RFC 9457).
type Problem struct {
	Type   string      `json:"type" format:"uri" doc:"The page that defines the code."`
	Title  string      `json:"title" doc:"What the code means."`
	Status int         `json:"status" doc:"The status of the answer."`
	Detail string      `json:"detail" doc:"What happened here, and what to do about it."`
	Code   plugin.Code `json:"code" doc:"One of the codes in docs/codes.md."`
	CallID string      `json:"call_id,omitzero" doc:"The call that was refused, where there is one."`
	Trace  string      `json:"trace_id,omitzero" doc:"The trace that the request is in, where the host tells of traces."`
	Errors []Place     `json:"errors,omitzero" doc:"What is wrong, place by place."`
	Hint   string      `json:"hint,omitzero" doc:"What to do about it at the command line."`

	Result jsontext.Value `json:"result,omitzero" doc:"What is known of the call, as the host has it, where the request asks for it with full."`

	Details   jsontext.Value `json:"details,omitzero" doc:"What the host adds: an object."`
	Retryable bool           `json:"retryable,omitzero" doc:"The same request may succeed later."`

	header http.Header
	said   error // what the host said of it, for who may see all; nil for no more
}

// A Place is one place in a request, and what is wrong there.
type Place struct {
	Pointer string   `json:"pointer" doc:"A JSON pointer into the body, or the name of a parameter or header."`
	Detail  string   `json:"detail"`
	Members []string `json:"members,omitzero" nullable:"false" doc:"The members that are missing there, or may not be there, where that is what is wrong."`
}

// Error implements error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus implements [huma.StatusError].
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements [huma.HeadersError].
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType implements [huma.ContentTypeFilter].
func (*Problem) ContentType(string) string { return "application/problem+json" }

// refused returns the problem of a code. The status is that of the code where it is 0.
func refused(status int, code plugin.Code, detail string, places ...Place) *Problem {
	if status == 0 {
		status = StatusOf(code)
	}
	return &Problem{Type: codesPage + string(code), Title: code.Meaning(), Status: status, Detail: detail, Code: code, Errors: places, header: http.Header{}}
}

// problem returns the problem that an error is. What is the host's own trouble is told to
// its log; a caller hears only that there is some.
func (s *server) problem(q *request, err error) *Problem {
	p := new(Problem)
	if errors.As(err, &p) && p.said != nil && q.api.Unbounded() {
		err, p = p.said, new(Problem) // nothing is another's here: the words are those of the command line
	}
	if p.Code == "" && !errors.As(err, &p) {
		e := host.AsError(err)
		p = refusedBy(e)
		if e.Code == plugin.CodeInternal {
			p.Detail, p.Hint = "the host could not do this; its log says why", ""
		}
	}
	p.Trace = telemetry.TraceID(q.Context())
	level := slog.LevelDebug
	if p.Status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	s.Log.Log(context.Background(), level, "a request was refused", "method", q.Method, "path", q.URL.Path, "status", p.Status,
		"code", p.Code, "call_id", p.CallID, "request_id", q.id, "cause", err.Error())
	return p
}

// after says when the request may be sent again, where that is known.
func (p *Problem) after(d time.Duration) {
	if text := seconds(d); text != "" && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable) {
		p.header.Set("Retry-After", text)
	}
}

// seconds returns a time in whole seconds, "" where there is none.
func seconds(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}

// told leaves out of a message what it says of the command line.
func told(message string) string {
	message, _ = hinted(message)
	return message
}

// hinted takes from a message what it says of the command line.
func hinted(message string) (text, hint string) {
	text, hint, found := strings.Cut(message, "; 'mortise ")
	if found {
		hint = "'mortise " + hint
	}
	return text, hint
}

// refusedBy is the problem of an error of the host.
func refusedBy(e *plugin.Error) *Problem {
	text, hint := hinted(e.Message)
	p := refused(0, e.Code, text)
	p.Hint, p.Retryable, p.Details = hint, e.Retryable, jsontext.Value(e.Details)
	p.after(e.RetryAfter)
	return p
}

// missing says that something is not there, or not the caller's: both in the same words.
func missing(what, id string) *Problem {
	p := refused(0, plugin.CodeNotFound, "there is no "+what+" "+id)
	p.Hint = listed[what]
	return p
}

// aPlugin is the noun whose names the host suggests, of those that the caller sees.
const aPlugin = "plugin"

// listed are the commands that show what there is of a noun. They do not depend on the id,
// so that what is another's is answered like what there is not.
var listed = map[string]string{
	"agent": "'mortise agents list' shows those there are", "approval": "'mortise approvals list' shows those there are", "call": "'mortise calls list' shows those there are",
	"feed": "'mortise feeds list' shows those there are", "knowledge base": "'mortise kb list' shows all there are, and 'mortise kb create ID' begins one",
	"model": "'mortise models list' shows all there are", "plan": "'mortise plans list' shows those there are", "policy": "'mortise policy list' shows those there are",
	"reference data": "'mortise reference list' shows what there is", "session": "'mortise sessions list' shows those there are", "token": "'mortise tokens list' shows those there are",
}

// unlessMissing is err, and for what was not found the one answer there is to that.
func unlessMissing(err error, what, id string) error {
	if what == aPlugin { // the host's own words are the same for what the caller does not see
		return err
	}
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		p := missing(what, id)
		p.said = err
		return p
	}
	return err
}

// spell gives what huma itself refuses the form of all problems.
func (s *server) spell(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	code, detail := plugin.CodeInvalidInput, "the request is not what this route takes"
	if e.Status >= http.StatusInternalServerError {
		code, detail = plugin.CodeInternal, "a fault of the host itself; its log has the cause"
		s.Log.Error("a request failed inside the host", "path", of(ctx.Context()).URL.Path, "request_id", of(ctx.Context()).id, "cause", e.Detail)
	} else if len(e.Errors) == 0 {
		detail = e.Detail
	}
	p := refused(e.Status, code, detail)
	p.Trace = telemetry.TraceID(ctx.Context())
	for _, at := range e.Errors[:min(len(e.Errors), maxPlaces)] {
		if code == plugin.CodeInternal {
			break
		}
		p.Errors = append(p.Errors, Place{Pointer: pointerOf(at.Location), Detail: at.Message})
	}
	return p, nil
}

// pointerOf returns a place that huma names, such as body.a[3].b, as a JSON pointer, or
// as the name of a parameter.
func pointerOf(location string) string {
	in, name, _ := strings.Cut(location, ".")
	if in != "body" {
		return name
	}
	if name == "" {
		return ""
	}
	return "/" + strings.NewReplacer(".", "/", "[", "/", "]", "", "~", "~0").Replace(name)
}

// format is how bodies are read and written.
var format = huma.Format{
	Marshal: func(w io.Writer, v any) error { return json.MarshalWrite(w, v, json.Deterministic(true)) },
	Unmarshal: func(data []byte, v any) error {
		if json.Unmarshal(data, v) != nil {
			return errUnread // the library's error repeats what it does not understand
		}
		return nil
	},
}

var errUnread = errors.New("it cannot be read as what this route takes")

// isInvalid reports whether an id is none of the nouns that are asked for.
func isInvalid(err error) bool { return plugin.CodeOf(err) == plugin.CodeInvalidInput }
