//go:build !noconsole

package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/console"
)

func get(t *testing.T, method, path, encoding string) (*http.Response, []byte) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	w := httptest.NewRecorder()
	console.New().ServeHTTP(w, r)
	res := w.Result()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// Every path that is no file is the page, which nothing may frame and in which nothing
// but the host's own files runs.
func TestThePageIsTheHostsAlone(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/calls", "/calls/01", "/operations/a/b", "/index.html", "/../etc/passwd", "/a%00b"} {
		res, body := get(t, "GET", path, "")
		if res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`<script type="module"`)) {
			t.Errorf("%s: %d %.60s", path, res.StatusCode, body)
		}
		policy := res.Header.Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: the policy %q lacks %q", path, policy, rule)
			}
		}
		for _, unsafe := range []string{"unsafe-", "http:", "https:", "*", "data:"} {
			if strings.Contains(policy, unsafe) {
				t.Errorf("%s: the policy %q has %q", path, policy, unsafe)
			}
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin"} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if bytes.Contains(body, []byte("<style")) || regexp.MustCompile(`<script[^>]*>[^<]`).Match(body) {
			t.Errorf("%s: the page has a style or a script of its own, which the policy refuses", path)
		}
	}
}

// The files that the page names are there, compressed for who takes that, and kept for
// good, since another content has another name.
func TestTheFilesThatThePageNamesAreThere(t *testing.T) {
	t.Parallel()
	_, page := get(t, "GET", "/", "")
	names := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllSubmatch(page, -1)
	if len(names) < 3 {
		t.Fatalf("the page names %d files", len(names))
	}
	for _, name := range names {
		path := string(name[1])
		res, plain := get(t, "GET", path, "")
		if res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
		for encoding, packs := range map[string]bool{"gzip, deflate, br": true, "br;q=1.0, gzip;q=0.8": true, "gzip;q=0": false, "br": false, "gzip;q=x": false} {
			res, body := get(t, "GET", path, encoding)
			if (res.Header.Get("Content-Encoding") == "gzip") != packs {
				t.Errorf("%s for %q: %v", path, encoding, res.Header)
			}
			if packs {
				r, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(body, plain) {
				t.Errorf("%s for %q has another content", path, encoding)
			}
		}
	}
	for method, status := range map[string]int{"HEAD": 200, "POST": 405, "DELETE": 405} {
		if res, body := get(t, method, "/", ""); res.StatusCode != status || method == "HEAD" && len(body) > 0 {
			t.Errorf("%s: %d with %d bytes", method, res.StatusCode, len(body))
		}
	}
	if res, _ := get(t, "GET", "/console/none.js", ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("a file that there is not: %d", res.StatusCode)
	}
}

// What is embedded stays within its budget: 1.2 MB in all, and 120 KB of it for the scripts
// that the first page names, compressed.
func TestTheConsoleIsSmall(t *testing.T) {
	t.Parallel()
	var all int64
	entries, err := os.ReadDir("dist/console")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		all += info.Size()
	}
	_, page := get(t, "GET", "/", "")
	var first int
	for _, name := range regexp.MustCompile(`(?:src|href)="(/[^"]+\.js)"`).FindAllSubmatch(page, -1) {
		_, packed := get(t, "GET", string(name[1]), "gzip")
		first += len(packed)
	}
	if first < 10_000 || first > 120_000 {
		t.Errorf("the scripts of the first page have %d bytes", first)
	}
	if all < 50_000 || all > 1_200_000 {
		t.Errorf("the files have %d bytes", all)
	}
}
