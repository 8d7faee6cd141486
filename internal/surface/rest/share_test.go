package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// No caller takes all the room there is; another has theirs, and what has ended makes room.
func TestATokenHasAShare(t *testing.T) {
	t.Parallel()
	s := New(Options{Share: 2}).(*server)
	r := httptest.NewRequest(http.MethodPost, "/api/v1/plans", nil)
	ann, bob := &host.Caller{Token: "a"}, &host.Caller{Asker: "oidc:b"}
	enter := func(c *host.Caller, code plugin.Code) func() {
		t.Helper()
		leave, err := s.share(c, r)
		if plugin.CodeOf(err) != code {
			t.Fatalf("%v", err)
		}
		return leave
	}
	first := enter(ann, "")
	enter(ann, "")
	enter(ann, plugin.CodeRateLimited)() // it holds nothing
	enter(ann, plugin.CodeRateLimited)
	other := enter(bob, "")
	if _, err := s.share(ann, httptest.NewRequest(http.MethodGet, "/api/v1/events", nil)); err != nil {
		t.Errorf("a stream: %v", err)
	}
	first()
	enter(ann, "")()
	other()
	if len(s.busy.by) != 1 {
		t.Errorf("%v are counted", s.busy.by)
	}
}

// A panic in a call that is streamed is a problem, and never its result; and streamed calls
// are counted as streams.
func TestAPanicIsNoResultOfAStream(t *testing.T) {
	t.Parallel()
	s := New(Options{PerToken: 1, Beat: time.Hour, WriteTime: time.Second}).(*server)
	s.mux.HandleFunc("POST /begun", func(w http.ResponseWriter, r *http.Request) {
		r.Context().Value(requestKey{}).(*request).hears(false)
		_, _ = w.Write([]byte(`{"half":`))
		panic("the ceiling fell")
	})
	s.mux.HandleFunc("POST /unbegun", func(http.ResponseWriter, *http.Request) { panic("the ceiling fell") })
	ask := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		q := &request{id: "1", control: http.NewResponseController(w), caller: host.Caller{Token: "a"}}
		r := httptest.NewRequest(http.MethodPost, path, nil)
		q.Request = r
		s.live(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, q)), q)
		return w
	}
	if w := ask("/begun"); w.Code != 200 || !strings.Contains(w.Body.String(), "event: problem\n") || strings.Contains(w.Body.String(), "event: result") || strings.Contains(w.Body.String(), "ceiling") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask("/unbegun"); w.Code != 500 || !strings.Contains(w.Body.String(), `"internal"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	leave, err := s.enter(host.Caller{Token: "a"})
	if err != nil {
		t.Fatalf("a stream that ended is counted: %v", err)
	}
	if w := ask("/begun"); w.Code != http.StatusTooManyRequests {
		t.Errorf("a token has more streams than it may: %d %s", w.Code, w.Body)
	}
	leave()
}
