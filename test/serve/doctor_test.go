package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

// visit is what 'mortise doctor --server' finds: for each thing whether it is well, and what
// it says.
func (n *node) visit(url, token string) (ok map[string]bool, says map[string]string, healthy bool, status int) {
	n.Helper()
	cmd := n.command("doctor", "--server", url, "--json")
	cmd.Env = append(cmd.Env, "MORTISE_TOKEN="+token)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		n.Fatal(err)
	}
	var found struct {
		OK       bool `json:"ok"`
		Findings []struct {
			What, Detail string
			OK           bool
		} `json:"findings"`
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		n.Fatalf("%v: %s %s", err, out.String(), errs.String())
	}
	ok, says = map[string]bool{}, map[string]string{}
	for _, f := range found.Findings {
		ok[f.What], says[f.What] = f.OK, f.Detail
	}
	return ok, says, found.OK, cmd.ProcessState.ExitCode()
}

// A host that is well is found to be so, over the network and over its owner's socket. What
// stands in the way of its use is named: a token that is none, a proxy that holds events
// back, one whose host is down, a clock that is wrong, an address where nothing answers.
func TestTheDoctorLooksAtAServer(t *testing.T) {
	n := begin(t, "")
	ok, says, healthy, status := n.visit(n.url, n.token)
	for _, what := range []string{"reachable", "encryption", "clock", "ready", "token", "version", "a small request", "events"} {
		if !ok[what] {
			t.Errorf("%s: %q", what, says[what])
		}
	}
	if !healthy || status != 0 || !strings.HasPrefix(says["version"], "Mortise 0.") || !strings.Contains(says["version"], "API 1") {
		t.Errorf("healthy %v, status %d, version %q", healthy, status, says["version"])
	}
	out, errs, status := n.run("doctor")
	for _, line := range []string{"owner's socket, reachable", "owner's socket, ready", "owner's socket, events"} {
		if !strings.Contains(out, line) {
			t.Errorf("doctor says nothing of the %s: %d %s %s", line, status, out, errs)
		}
	}
	if ok, says, healthy, status = n.visit(n.url, "mrt_none"); ok["token"] || healthy || status != 1 || !strings.Contains(says["token"], "not valid") {
		t.Errorf("a wrong token: %v %v %d", says, healthy, status)
	}
	if ok, says, healthy, status = n.visit(n.url, ""); ok["token"] || !healthy || status != 0 || !strings.Contains(says["token"], "MORTISE_TOKEN") {
		t.Errorf("no token: %v %v %d", says, healthy, status)
	}

	through := func(proxy http.Handler) string {
		s := httptest.NewServer(proxy)
		t.Cleanup(s.Close)
		return s.URL
	}
	target, _ := url.Parse(n.url)
	pass := httputil.NewSingleHostReverseProxy(target)
	if ok, says, _, _ := n.visit(through(pass), n.token); !ok["events"] || !ok["a small request"] {
		t.Errorf("a proxy that passes all on: %v", says)
	}
	holds := through(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/events" { // until it has 64 KiB, which does not happen
			<-r.Context().Done()
			return
		}
		pass.ServeHTTP(w, r)
	}))
	if ok, says, healthy, status := n.visit(holds, n.token); ok["events"] || !healthy || status != 0 || !strings.Contains(says["events"], "holds answers back") {
		t.Errorf("a proxy that holds events back: %v %v %d", says, healthy, status)
	}
	late := through(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, "{}")
	}))
	if ok, says, healthy, status := n.visit(late, n.token); ok["clock"] || ok["token"] || healthy || status != 1 || !strings.Contains(says["clock"], "it is -") || !strings.Contains(says["token"], "no host") {
		t.Errorf("another program with another clock: %v %v %d", says, healthy, status)
	}
	n.end(syscall.SIGTERM)
	if ok, says, healthy, status := n.visit(holds, n.token); ok["reachable"] || healthy || status != 1 || !strings.Contains(says["reachable"], "proxy before one that is down") {
		t.Errorf("a proxy whose host is down: %v %v %d", says, healthy, status)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	none := "http://" + l.Addr().String()
	l.Close()
	if ok, _, healthy, status := n.visit(none, n.token); ok["reachable"] || healthy || status != 1 {
		t.Errorf("where nothing answers: %v %d", healthy, status)
	}
	if _, errs, status := n.run("doctor", "--server", "mortise.example.com"); status != 2 || !strings.Contains(errs, "is no address of a host") {
		t.Errorf("what is no address: %d %s", status, errs)
	}
}
