package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// However large the answers are that plugins ask for, one plugin and eight, whether
// they read them or not, the host stays within its baseline and 64 MiB.
func TestLargeAnswersStayWithinTheMemoryOfTheHost(t *testing.T) {
	port := serveMuch(t)
	dir := newHome(t)
	manifest := string(read(t, dir.dir+"/plugins/hostile.go/manifest.yaml"))
	dir.write(t, "plugins/hostile.go/manifest.yaml", []byte(manifest+"http: {hosts: [\"127.0.0.1:"+port+"\"]}\n"), 0o644)
	dir.configure(t, "egress: {loopback: [hostile.go]}\n")
	h := launch(t, dir)

	row := func(name, param string) *trial {
		for _, c := range trials() {
			if c.program == "go" && c.name == name {
				return &trial{row: c.row, n: c.n, param: param}
			}
		}
		t.Fatalf("there is no case %q", name)
		return nil
	}
	fetch := func(name, what string, n, size int) *trial {
		return row(name, fmt.Sprintf("http.fetch|%d|%d|%s|%s", n, size, port, what))
	}
	rounds := [][]*trial{ // those of one are made at once
		{fetch("asks for much", "length", 60, 3_600_000)},
		slices.Repeat([]*trial{fetch("asks for much", "length", 4, 3_600_000)}, 8),
	}
	only := os.Getenv("MORTISE_HOSTILE_ONLY")
	if only != "" || os.Getenv("MORTISE_HOSTILE_FLOODS") == "all" {
		more := []*trial{
			fetch("asks for much", "length", 60, 3_600_000), row("asks for much", "cache.get|60|1000000"), fetch("asks for much", "chunked", 60, 3_600_000), fetch("asks for much", "gzip", 60, 3_600_000), fetch("asks for much", "text", 60, 600_000),
			fetch("asks for much", "bytes", 60, 3_000_000), fetch("asks for much and rests", "length", 60, 3_600_000), fetch("asks for much and is gone", "length", 60, 3_600_000),
			row("asks for much", "storage.get|60|60000"), row("asks for much", "cursor.get|60|60000"), row("asks for much", "kb.get_document|60|1000000"),
			row("asks for much", "kb.search_chunks|60|1000000"), row("asks for much", "query.list|60|30000"), row("asks for much and is gone", "cache.get|60|1000000"),
		}
		for _, c := range more {
			rounds = append(rounds, []*trial{c}, slices.Repeat([]*trial{c}, 8))
		}
		rounds = append(rounds, slices.Concat(more, more)) // and all of them side by side
	}
	// The baseline is a host that has been at work, with what it keeps for later.
	warm := []*trial{row("fills the cache", "150"), honest(rounds[0][0]), honest(rounds[0][0])}
	for _, v := range h.tryAll(t, warm, 1) {
		if v.fault != "" {
			t.Errorf("%s: %s", v.trial, v.fault)
		}
	}
	base := h.memory(t)
	all := 0
	for _, cases := range rounds {
		if only != "" && !strings.Contains(cases[0].String(), only) {
			continue
		}
		peak := h.watchMemory()
		begun, served := time.Now(), 0
		for _, v := range h.tryAll(t, cases, len(cases)) {
			switch {
			case v.fault == "":
				served++
			case !strings.Contains(v.fault, "overloaded") && !strings.Contains(v.fault, "timeout"): // a machine may be busy
				t.Errorf("%d of %s: %s", len(cases), v.trial, v.fault)
			}
		}
		highest, _ := peak()
		t.Logf("%d of %s in %s, %d served: %d MiB before, %d MiB at most", len(cases), cases[0], time.Since(begun).Round(time.Second/10), served, base>>10, highest>>10)
		if highest > base+growth {
			t.Errorf("%d of %s: the host grew by %d MiB; %d MiB is the bound", len(cases), cases[0], (highest-base)>>10, growth>>10)
		}
		all += served
	}
	if all == 0 {
		t.Error("no plugin had what it asked for")
	}
	h.close(t)
}

// serveMuch starts a server whose paths say how and how many bytes it answers, and
// returns its port.
func serveMuch(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/")
		size, _ := strconv.Atoi(parts[2])
		body := `{"a":[` + strings.Repeat("1,", size/2) + "1]}"
		kind := "application/json"
		switch parts[1] {
		case "text": // each character of which takes six as JSON
			body, kind = strings.Repeat("\x01", size), "text/plain"
		case "bytes":
			body, kind = strings.Repeat("\xff", size), "application/octet-stream"
		}
		w.Header().Set("Content-Type", kind)
		switch parts[1] {
		case "gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped(body))
		case "chunked":
			for len(body) > 0 {
				n := min(len(body), 50_000)
				if _, err := io.WriteString(w, body[:n]); err != nil {
					return
				}
				body = body[n:]
			}
		default:
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = io.WriteString(w, body)
		}
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}
