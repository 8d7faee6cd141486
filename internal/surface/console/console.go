// Package console serves the web console: static files of the host, which ask the API
// for all that they show. It has no route of its own beside them.
//
// The sources are in console/; `npm run build` there writes dist. A program that is built
// with the tag noconsole has none of it.
package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// assets is where the files are whose names are hashes of what they hold.
const assets = "console/"

// policy is the content security policy of the page: everything is the host's own. The
// name of the one policy for trusted types is that of the framework's templates.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// A file is one file of the console.
type file struct {
	kind   string // its media type
	packed []byte // compressed with gzip
}

// Built reports whether the program was built with the console.
func Built() bool { return files != nil }

// New returns what answers with the files of the console, and nil where the program was
// built without. Every path that is no file is a page, whose address the browser reads.
func New() http.Handler {
	if files == nil {
		return nil
	}
	c := console{}
	err := fs.WalkDir(files, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(files, name)
		name = strings.TrimSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
		c[name] = file{mediaType(name), raw}
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return c
}

// mediaType returns that of a file. The names are our own.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// A console is its files by name.
type console map[string]file

// ServeHTTP implements [http.Handler].
func (c console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the console is only read", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	f, there := c[name]
	switch {
	case there && strings.HasPrefix(name, assets):
		h.Set("Cache-Control", "public, max-age=31536000, immutable") // another content has another name
	case strings.HasPrefix(name, assets):
		http.Error(w, "the console has no such file", http.StatusNotFound)
		return
	default:
		f = c["index.html"]
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	}
	h.Set("Content-Type", f.kind)
	h.Add("Vary", "Accept-Encoding")
	body := io.Reader(bytes.NewReader(f.packed))
	if packs(r) {
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(f.packed)))
	} else {
		plain, err := gzip.NewReader(body)
		if err != nil {
			panic(err) // it was compressed when the program was built
		}
		body = plain
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, body) // the browser may be gone
	}
}

// packs reports whether the one who asks takes what is compressed with gzip.
func packs(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, weighed := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";q=")
		if q, err := strconv.ParseFloat(weight, 64); name == "gzip" && (!weighed || err == nil && q > 0) {
			return true
		}
	}
	return false
}
