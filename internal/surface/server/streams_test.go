package server_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/internal/surface/server"
	"github.com/mortise-dev/mortise/plugin"
)

// Streams take the room of no request, outlive the time that one has, and end with the host.
func TestStreamsStayUntilTheHostStops(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "mortise.yaml"), []byte("sandbox: \"off\"\npolicy: {configure: [root], groups: {people: [ann]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	_, token, err := a.As(plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}}).Tokens().Create(t.Context(), host.NewToken{Name: "t", For: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(t.Context(), "127.0.0.1:0", false, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	handler := server.New(server.Options{Agents: &desk{}, AtOnce: 1, API: rest.New(rest.Options{Host: a.Host, Authenticate: a.Host.Authenticator().Token, Closing: ctx, Beat: time.Second})})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, handler, nil, time.Minute, quiet) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string) *http.Response {
		t.Helper()
		r, err := http.NewRequest("GET", "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 {
			t.Errorf("%s is answered %d", path, resp.StatusCode)
		}
		return resp
	}
	var streams []*http.Response
	for range 3 {
		resp := get("/api/v1/events")
		defer resp.Body.Close()
		streams = append(streams, resp)
	}
	resp := get("/api/v1/plugins")
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	stays := 2
	if !testing.Short() {
		stays = 17 // longer than a request may take to come
	}
	for lines := bufio.NewScanner(streams[0].Body); stays > 0; {
		if !lines.Scan() {
			t.Fatalf("the stream ends by itself: %v", lines.Err())
		}
		if strings.HasPrefix(lines.Text(), ":") {
			stays--
		}
	}
	stop()
	for _, resp := range streams[1:] {
		text, err := io.ReadAll(resp.Body)
		if err != nil || !strings.HasSuffix(string(text), ":the host stops\n\n") {
			t.Errorf("a stream ends with %q, %v", text, err)
		}
	}
	if err := testwait.Receive(t, "the end of the host, which does not wait for its streams", ended); err != nil {
		t.Error(err)
	}
}
