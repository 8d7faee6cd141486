// Package authors runs plugins whose authors knew the contracts and the pages of
// surfaces alone, and never saw this host. They run as they were written; what the
// contract's text says must come of each call stands in the cases beside them.
package authors

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// A file has the cases of one plugin.
type file struct {
	Contract string `json:"contract"`
	Plugin   string `json:"plugin"`
	Cases    []item `json:"cases"`
}

// An item is one call, and what must come of it.
type item struct {
	Title      string            `json:"title"`
	Operation  string            `json:"operation"`
	Input      json.RawMessage   `json:"input"`
	Call       string            `json:"call"` // of the Actions API: list_actions or perform_action
	Feed       bool              `json:"feed"` // it runs as a schedule
	Files      map[string]string `json:"files"`
	HTTP       []route           `json:"http"` // in order; the last of an address again and again
	Secrets    map[string]string `json:"secrets"`
	Identities []identity        `json:"identities"` // accounts that the caller has connected
	Documents  []json.RawMessage `json:"kb_documents"`
	Before     []item            `json:"before"` // calls whose outcome is not judged
	Setup      []item            `json:"setup"`
	Context    json.RawMessage   `json:"context"`
	Expect     expectation       `json:"expect"`
}

type route struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	JSON    json.RawMessage   `json:"json"`
	Text    string            `json:"text"`
}

type identity struct {
	Provider string   `json:"provider"`
	Email    string   `json:"email"`
	Scopes   []string `json:"scopes"`
	Token    string   `json:"token"`
}

type expectation struct {
	OK       bool            `json:"ok"`
	Contains json.RawMessage `json:"contains"`
	Code     string          `json:"code"`
	Events   json.RawMessage `json:"events"`
}

// A host is a data directory.
type host struct{ home string }

var binary string // the program

func TestMain(m *testing.M) {
	var err error
	if binary, err = testinput.Find("mortise"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newHost(t *testing.T, config string) *host {
	t.Helper()
	home, err := os.MkdirTemp("", "authors-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	h := &host{home}
	// A machine that is busy starts Python slowly, and how fast it starts is no subject here.
	if err := os.WriteFile(filepath.Join(h.home, "mortise.yaml"), []byte("processes: {handshake: 60s}\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) command(t *testing.T, args ...string) (out, errs []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "MORTISE_HOME="+h.home)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("mortise %s: %v\n%s%s", strings.Join(args, " "), ctx.Err(), stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

// must runs a command that succeeds and returns what it printed.
func (h *host) must(t *testing.T, args ...string) []byte {
	t.Helper()
	out, errs, err := h.command(t, args...)
	if err != nil {
		t.Fatalf("mortise %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	return out
}

// A provider answers the requests of one case.
type provider struct {
	mu     sync.Mutex
	routes map[string][]route
	asked  map[string]int
	base   string
}

// provide starts a provider without routes on this machine.
func provide(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.base = server.URL
	return p
}

// set gives the provider the routes of a case.
func (p *provider) set(routes []route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes, p.asked = map[string][]route{}, map[string]int{}
	for _, r := range routes {
		at, err := url.Parse(strings.Replace(r.URL, ":PORT", "", 1))
		if err != nil {
			continue
		}
		key := r.Method + " " + at.Path + "?" + at.Query().Encode()
		p.routes[key] = append(p.routes[key], r)
	}
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
	p.mu.Lock()
	defer p.mu.Unlock()
	key := r.Method + " " + r.URL.Path + "?" + r.URL.Query().Encode()
	all := p.routes[key]
	if len(all) == 0 { // an address without its query means any
		key = r.Method + " " + r.URL.Path + "?"
		all = p.routes[key]
	}
	if len(all) == 0 {
		http.Error(w, "nothing at "+r.Method+" "+r.URL.String(), http.StatusNotFound)
		return
	}
	one := all[min(p.asked[key], len(all)-1)]
	p.asked[key]++
	body := []byte(one.Text)
	kind := "text/plain; charset=utf-8"
	if len(one.JSON) > 0 {
		body, kind = p.place(one.JSON), "application/json"
	}
	w.Header().Set("Content-Type", kind)
	for name, value := range one.Headers {
		w.Header().Set(name, string(p.place([]byte(value))))
	}
	if one.Status != 0 {
		w.WriteHeader(one.Status)
	}
	_, _ = w.Write(body)
}

// place puts the port of the provider where a text says PORT.
func (p *provider) place(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("http://127.0.0.1:PORT"), []byte(p.base))
}

// contains reports why a value lacks something of another, "" where it has all: an object has
// at least the members that are wanted, a list at least as many elements, each with what is
// wanted of it.
func contains(at string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		have, is := got.(map[string]any)
		if !is {
			return fmt.Sprintf("%s is %v, and no object", at, got)
		}
		for name, value := range want {
			inner, there := have[name]
			if !there && value != nil {
				return fmt.Sprintf("%s/%s is not there", at, name)
			}
			if why := contains(at+"/"+name, inner, value); why != "" {
				return why
			}
		}
		return ""
	case []any:
		have, is := got.([]any)
		if !is || len(have) < len(want) {
			return fmt.Sprintf("%s is %v; wanted is %v", at, got, want)
		}
		for i := range want {
			if why := contains(fmt.Sprintf("%s/%d", at, i), have[i], want[i]); why != "" {
				return why
			}
		}
		return ""
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %v; wanted is %v", at, got, want)
	}
	return ""
}

// decode reads JSON as package json has it.
func decode(t *testing.T, raw []byte) (value any) {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return value
}

// cases returns the files of cases below a directory, with where each is.
func cases(t *testing.T, below string) map[string]file {
	t.Helper()
	all := map[string]file{}
	err := filepath.WalkDir(below, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".cases.json") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var f file
		if err := json.Unmarshal(raw, &f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all[strings.TrimSuffix(path, ".cases.json")] = f
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files below %s, %v", len(all), below, err)
	}
	if testing.Short() {
		return some(t, all)
	}
	return all
}

// some returns a fifth of the plugins, always the same.
func some(t *testing.T, all map[string]file) map[string]file {
	t.Helper()
	names := slices.Sorted(maps.Keys(all))
	for i, name := range names {
		if i%5 != 0 {
			delete(all, name)
		}
	}
	t.Logf("%d of %d plugins; make test-long runs all", len(all), len(names))
	return all
}
