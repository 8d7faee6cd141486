package llm

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func keyFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(content+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryProviderAsksInItsFormat(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wire) {
		reply, err := w.provider().Complete(t.Context(), Request{Model: "m", System: "be brief", Prompt: "what is it?", MaxTokens: 77})
		if err != nil {
			t.Fatal(err)
		}
		if want := (Reply{Text: "fine", Usage: Usage{10, 5}, Model: "m-1", Stop: reply.Stop}); reply != want || reply.Stop == "" {
			t.Errorf("got %+v", reply)
		}
		if got, want := w.requests(), []asked{{model: "m", system: "be brief", prompt: "what is it?", maxTokens: 77}}; !reflect.DeepEqual(got, want) {
			t.Errorf("the server read %+v", got)
		}
	})
}

func TestImagesAndDocumentsGoBeforeThePrompt(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wire) {
		parts := []Part{
			{MIME: "image/png", Name: "image", Data: []byte("pixels")},
			{MIME: "application/pdf", Name: "report.pdf", Data: []byte("%PDF")},
			{MIME: "text/plain", Name: "notes.txt", Data: []byte("notes")},
		}
		if _, err := w.provider().Complete(t.Context(), Request{Model: "m", Prompt: "compare", MaxTokens: 5, Parts: parts}); err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{
			"openai":    {"image image/png  pixels", "file application/pdf report.pdf %PDF", "file text/plain  notes"},
			"anthropic": {"image image/png  pixels", "file application/pdf report.pdf %PDF", "file text/plain notes.txt notes"},
			"gemini":    {"image image/png  pixels", "file application/pdf  %PDF", "file text/plain  notes"},
		}[w.format]
		if got := w.requests()[0]; !reflect.DeepEqual(got.parts, want) || got.prompt != "compare" {
			t.Errorf("the server read %+v", got)
		}
	})
}

// TestTheClientsSendOnce provokes the retries, redirects and continuations that
// the clients would make by themselves.
func TestTheClientsSendOnce(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wire) {
		for _, status := range []int{307, 308, 408, 409, 429, 500, 502, 503, 504, 529} {
			before := len(w.requests())
			w.mu.Lock()
			w.answer = func(out http.ResponseWriter, _ *http.Request, _ int) {
				out.Header().Set("X-Should-Retry", "true")
				out.Header().Set("Retry-After", "0")
				out.Header().Set("Location", w.server.URL+"/elsewhere")
				w.refuse(out, status, "some_error", "no")
			}
			w.mu.Unlock()
			if _, err := w.provider().Complete(t.Context(), Request{Model: "m", Prompt: "p", MaxTokens: 5}); err == nil {
				t.Errorf("%d: it succeeded", status)
			}
			if n := len(w.requests()) - before; n != 1 {
				t.Errorf("%d: %d requests were sent", status, n)
			}
		}
		w.mu.Lock()
		w.asked = nil
		w.answer = func(out http.ResponseWriter, r *http.Request, _ int) {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		w.mu.Unlock()
		if _, err := w.provider().Complete(t.Context(), Request{Model: "m", Prompt: "p", MaxTokens: 5}); err == nil || len(w.requests()) != 1 {
			t.Errorf("a broken connection: %v, %d requests", err, len(w.requests()))
		}
	})
}

func TestGeminiIsNotAskedToGoOn(t *testing.T) {
	t.Parallel()
	w := newWire(t, "gemini")
	w.answer = func(out http.ResponseWriter, _ *http.Request, _ int) {
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"half"}]},"finishReason":"CONTINUATION","continuationToken":"dG9rZW4="}],"continuationToken":"dG9rZW4=","usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`))
	}
	reply, err := w.provider().Complete(t.Context(), Request{Model: "m", Prompt: "p", MaxTokens: 5})
	if n := len(w.requests()); n != 1 || err != nil || reply.Text != "half" || reply.Usage != (Usage{3, 4}) {
		t.Errorf("%d requests, %+v, %v", n, reply, err)
	}
}

// TestTheEnvironmentIsNotAsked sets what the clients would read by themselves:
// addresses, keys, headers, telemetry.
func TestTheEnvironmentIsNotAsked(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_BASE_URL": "http://127.0.0.1:1/", "OPENAI_API_KEY": "wrong", "OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "project", "OPENAI_CUSTOM_HEADERS": "X-Unwanted: 1",
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/", "ANTHROPIC_API_KEY": "wrong", "ANTHROPIC_AUTH_TOKEN": "wrong", "ANTHROPIC_CUSTOM_HEADERS": "X-Unwanted: 1", "ANTHROPIC_PROFILE": "none",
		"GOOGLE_API_KEY": "wrong", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1/", "GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l",
	} {
		t.Setenv(name, value)
	}
	for _, format := range wires {
		w := newWire(t, format)
		if _, err := w.provider().Complete(t.Context(), Request{Model: "m", Prompt: "p", MaxTokens: 5}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestFailuresHaveKinds(t *testing.T) {
	t.Parallel()
	type failure struct {
		name   string
		answer func(w *wire, out http.ResponseWriter)
		kind   Kind
		sent   bool // it may be charged for
	}
	status := func(n int, code, message string) func(*wire, http.ResponseWriter) {
		return func(w *wire, out http.ResponseWriter) { w.refuse(out, n, code, message) }
	}
	raw := func(status int, mime, body string) func(*wire, http.ResponseWriter) {
		return func(_ *wire, out http.ResponseWriter) {
			out.Header().Set("Content-Type", mime)
			out.WriteHeader(status)
			_, _ = out.Write([]byte(body))
		}
	}
	failures := []failure{
		{"no key", status(401, "authentication_error", "bad key "+secret), Auth, false},
		{"no permission", status(403, "permission_error", "not yours"), Auth, false},
		{"quota", func(w *wire, out http.ResponseWriter) {
			if w.format != "gemini" {
				w.refuse(out, 429, "insufficient_quota", "pay first")
				return
			}
			raw(429, "application/json", `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]},{"retryDelay":"17s"}]}}`)(w, out)
		}, Quota, false},
		{"unpaid", status(402, "billing_error", "pay first"), Quota, false},
		{"too fast", status(429, "rate_limit_error", "slow down"), Pace, false},
		{"overloaded", status(529, "overloaded_error", "busy"), Overloaded, false},
		{"unavailable", status(503, "UNAVAILABLE", "busy"), Overloaded, false},
		{"error in HTML", raw(502, "text/html", "<h1>Bad Gateway</h1>"), Overloaded, false},
		{"error without a body", raw(500, "application/json", ""), Overloaded, false},
		{"error in a list", raw(400, "application/json", `[{"error":{"code":400,"message":"odd","status":"INVALID_ARGUMENT"}}]`), BadRequest, false},
		{"bad request", status(400, "invalid_request_error", "too many tokens"), BadRequest, false},
		{"no such model", status(404, "not_found_error", "no such model"), BadRequest, false},
		{"too long", status(413, "request_too_large", "shorter"), TooLarge, false},
		{"redirect", func(_ *wire, out http.ResponseWriter) {
			out.Header().Set("Location", "http://127.0.0.1:1/")
			out.WriteHeader(302)
		}, BadRequest, false},
		{"garbage", raw(200, "application/json", `{"candidates": 7, "choices": "x", "content": 1`), Malformed, true},
		{"not JSON", raw(200, "text/html", `<html>welcome</html>`), Malformed, true},
		{"another answer", raw(200, "application/json", `{"hello":"world"}`), Malformed, true},
		{"null", raw(200, "application/json", `null`), Malformed, true},
		{"nothing", raw(200, "application/json", ``), Malformed, true},
		{"all tokens thought away", func(w *wire, out http.ResponseWriter) {
			w.stop(out, "", 3, 5, map[string]string{"openai": "length", "anthropic": "max_tokens", "gemini": "MAX_TOKENS"}[w.format])
		}, Malformed, false},
		{"nothing, and no reason", func(w *wire, out http.ResponseWriter) { w.stop(out, "", 3, 0, "") }, Malformed, false},
		{"refused", func(w *wire, out http.ResponseWriter) {
			w.stop(out, "", 3, 1, map[string]string{"openai": "content_filter", "anthropic": "refusal", "gemini": "SAFETY"}[w.format])
		}, Refused, false},
		{"cut off", func(_ *wire, out http.ResponseWriter) {
			out.Header().Set("Content-Type", "application/json")
			out.Header().Set("Content-Length", "1000")
			_, _ = out.Write([]byte(`{"id":`))
			panic(http.ErrAbortHandler)
		}, Unreachable, true},
		{"hung up", func(*wire, http.ResponseWriter) { panic(http.ErrAbortHandler) }, Unreachable, true},
		{"huge", func(_ *wire, out http.ResponseWriter) {
			out.Header().Set("Content-Type", "application/json")
			for range maxAnswer/len(huge) + 2 {
				if _, err := out.Write(huge); err != nil {
					return
				}
			}
		}, TooLarge, true},
	}
	eachWire(t, func(t *testing.T, w *wire) {
		for _, f := range failures {
			w.mu.Lock()
			w.answer = func(out http.ResponseWriter, _ *http.Request, _ int) { f.answer(w, out) }
			w.mu.Unlock()
			_, err := w.provider().Complete(t.Context(), Request{Model: "m", Prompt: "p", MaxTokens: 5})
			var e *Error
			if !errors.As(err, &e) || e.Kind != f.kind || e.Sent != f.sent {
				t.Errorf("%s: got %+v", f.name, err)
				continue
			}
			if strings.Contains(e.Error(), secret) || len(e.Error()) > 500 || strings.ContainsAny(e.Error(), "\n\x1b") {
				t.Errorf("%s: the text is %q", f.name, e.Error())
			}
		}
	})
}

// TestAnEmptyAnswerIsAnAnswer where the model ended it of itself.
func TestAnEmptyAnswerIsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, gave := range []int{0, 5} {
		eachWire(t, func(t *testing.T, w *wire) {
			w.answer = func(out http.ResponseWriter, _ *http.Request, _ int) { w.fine(out, "", 3, gave) }
			reply, err := w.provider().Complete(t.Context(), Request{Model: "m", Prompt: "p", MaxTokens: 5})
			if err != nil || reply.Text != "" || reply.Usage != (Usage{3, gave}) {
				t.Errorf("%+v, %v", reply, err)
			}
		})
	}
}

// An expired context is one whose deadline a test decides.
type expired struct {
	context.Context
	done chan struct{}
}

// expiring returns a context whose deadline passes when expire is called.
func expiring(ctx context.Context) (late context.Context, expire func()) {
	c := expired{ctx, make(chan struct{})}
	return c, sync.OnceFunc(func() { close(c.done) })
}

func (c expired) Done() <-chan struct{} { return c.done }

func (c expired) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestASlowAnswerIsATimeoutAndACancelIsNot(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wire) {
		arrived := make(chan struct{}, 2)
		w.answer = func(_ http.ResponseWriter, r *http.Request, _ int) { arrived <- struct{}{}; <-r.Context().Done() }
		late, expire := expiring(t.Context())
		go func() { <-arrived; expire() }()
		_, err := w.provider().Complete(late, Request{Model: "m", Prompt: "p", MaxTokens: 5})
		var e *Error
		if !errors.As(err, &e) || e.Kind != Timeout || !e.Sent {
			t.Errorf("slow: %+v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		_, err = w.provider().Complete(ctx, Request{Model: "m", Prompt: "p", MaxTokens: 5})
		if !errors.As(err, &e) || e.Kind != Cancelled || !e.Sent {
			t.Errorf("cancelled: %+v", err)
		}
	})
}

func TestAnUnreachableProviderIsNotCharged(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wire) {
		p := w.provider()
		w.server.Close()
		_, err := p.Complete(t.Context(), Request{Model: "m", Prompt: "p", MaxTokens: 5})
		var e *Error
		if !errors.As(err, &e) || e.Kind != Unreachable || e.Sent || strings.Contains(e.Message, "127.0.0.1") {
			t.Errorf("got %+v", err)
		}
	})
}

func TestLongAnswersAreAskedForWithoutStreaming(t *testing.T) {
	t.Parallel()
	eachWire(t, func(t *testing.T, w *wire) {
		if _, err := w.provider().Complete(t.Context(), Request{Model: "claude-opus-4-20250514", Prompt: "p", MaxTokens: 100_000}); err != nil {
			t.Error(err)
		}
	})
}

func TestKeysAreReadWhereTheyAre(t *testing.T) {
	t.Setenv("MODEL_KEY_OF_TEST", " "+secret+" ")
	dir := t.TempDir()
	for _, c := range []struct {
		key  Key
		want string // "" for a failure that says text
		text string
	}{
		{Key{Env: "MODEL_KEY_OF_TEST"}, secret, ""},
		{Key{Env: "MODEL_KEY_OF_NOBODY"}, "", "MODEL_KEY_OF_NOBODY is not set"},
		{Key{File: keyFile(t, secret, 0o600)}, secret, ""},
		{Key{File: keyFile(t, secret, 0o400)}, secret, ""},
		{Key{File: keyFile(t, secret, 0o640)}, "", "chmod 600"},
		{Key{File: keyFile(t, secret, 0o604)}, "", "chmod 600"},
		{Key{File: keyFile(t, "", 0o600)}, "", "is empty"},
		{Key{File: keyFile(t, "two words", 0o600)}, "", "no key"},
		{Key{File: filepath.Join(dir, "absent")}, "", "no such file"},
		{Key{File: dir}, "", "no regular file"},
	} {
		got, err := c.key.Read()
		switch {
		case c.want != "" && (err != nil || got != c.want):
			t.Errorf("%+v: got %q, %v", c.key, got, err)
		case c.want == "" && (err == nil || err.Kind != Auth || !strings.Contains(err.Message, c.text)):
			t.Errorf("%+v: got %v", c.key, err)
		}
	}
	if got, err := (Key{}).Read(); got != "" || err != nil {
		t.Errorf("no place: %q, %v", got, err)
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "1.5": 1500 * time.Millisecond, "-3": 0, "soon": 0, "NaN": 0, "1e300": 0,
		"Sat, 21 Nov 2026 12:00:30 GMT": 30 * time.Second, "Sat, 21 Nov 2026 11:00:00 GMT": 0} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: got %s", value, got)
		}
	}
	if got := retryAfter(http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, now); got != 250*time.Millisecond {
		t.Errorf("milliseconds: got %s", got)
	}
}
