package rest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what a request is made of.
const (
	maxToken     = 512     // of this host
	maxSigned    = 8 << 10 // of a provider
	maxRequestID = 128
	maxPath      = 1024
	maxQuery     = 4096
	envelope     = 64 << 10 // bytes of a body besides the input

	unreadTime = time.Second // for the rest of the body of a refused request to come
)

// requestID returns the id that a request came with, where it can be repeated, or a new one.
func requestID(r *http.Request) string {
	given := r.Header.Get("X-Request-Id")
	if given != "" && len(given) <= maxRequestID && strings.Trim(given, idLetters) == "" {
		return given
	}
	random := make([]byte, 12)
	_, _ = rand.Read(random) // it does not fail
	return hex.EncodeToString(random)
}

const idLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+="

// addressed refuses requests that a page of another site had a browser send: what is
// reached on a loopback address is asked for by a name of this machine.
func (s *server) addressed(r *http.Request) error {
	if len(r.URL.Path) > maxPath || len(r.URL.RawQuery) > maxQuery {
		return refused(http.StatusRequestURITooLong, plugin.CodeInvalidInput, "the address of the request is longer than the host accepts")
	}
	if loopback(r) && !local(r.Host) && (s.Named == nil || !s.Named(r.Host)) {
		return refused(http.StatusForbidden, plugin.CodePolicyDenied, "the host is not reached by this name")
	}
	for _, origin := range r.Header.Values("Origin") {
		if from, err := url.Parse(origin); err != nil || from.Host == "" || !strings.EqualFold(from.Host, r.Host) {
			return refused(http.StatusForbidden, plugin.CodePolicyDenied, "pages of other sites are not answered")
		}
	}
	return nil
}

// loopback reports whether a request came to a loopback address, or to none that is known.
func loopback(r *http.Request) bool {
	to, known := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !known || to.IP.IsLoopback()
}

// local reports whether a Host names this machine.
func local(name string) bool {
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.Trim(name, "[]")
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// authenticate returns the caller of a request. Every reason why there is none gets one
// answer.
func (s *server) authenticate(r *http.Request) (host.Caller, error) {
	unknown := refused(0, plugin.CodeUnauthenticated, "a request names its caller by the header Authorization: Bearer TOKEN, with a token that is valid")
	unknown.header.Set("WWW-Authenticate", s.challenge(r))
	given := r.Header.Values("Authorization")
	if len(given) == 0 && s.Identify != nil {
		if caller, known, err := s.Identify(r); known || err != nil {
			if err == nil && len(r.Header.Values(AsHeader)) > 0 && !caller.Owns {
				err = errAs
			}
			return caller, err
		}
	}
	if len(r.Header.Values(AsHeader)) > 0 {
		return host.Caller{}, errAs
	}
	if len(given) != 1 || len(given[0]) > maxSigned {
		return host.Caller{}, unknown
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.HasPrefix(token, host.TokenPrefix) && len(token) > maxToken {
		return host.Caller{}, unknown
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.WorkTime)
	defer cancel()
	caller, err := s.Authenticate(ctx, token, s.Address(r))
	switch code := plugin.CodeOf(err); {
	case code == "":
		return caller, nil
	case code.Passes() || code == plugin.CodeCancelled: // it was not found out
		return host.Caller{}, err
	}
	return host.Caller{}, unknown
}

var errAs = plugin.Errorf(plugin.CodePolicyDenied, "%s is for the owner's socket: a token is of one principal, and acts for no other", AsHeader)

// body reads the body of a request, within the bounds of size, time and room.
func (s *server) body(w http.ResponseWriter, r *http.Request, by *host.Caller) (body io.ReadCloser, release func(), err error) {
	release = func() {}
	if r.ContentLength == 0 || r.Body == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // as below
		return io.NopCloser(bytes.NewReader(nil)), release, nil
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil, release, refused(http.StatusBadRequest, plugin.CodeInvalidInput, "a request with this method has no body")
	}
	if err := readable(r); err != nil {
		return nil, release, err
	}
	most := int64(s.MaxInput + envelope)
	large := refused(0, plugin.CodeInputTooLarge, fmt.Sprintf("a body has at most %d bytes", most))
	if r.ContentLength > most {
		w.Header().Set("Connection", "close")
		return nil, release, large
	}
	in := s.counted(by, http.MaxBytesReader(w, r.Body, most), most)
	release = in.release
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.BodyTime)) // where there is no connection, nothing is slow
	text, err := io.ReadAll(in)
	_ = control.SetReadDeadline(time.Time{}) // else the request would end with it
	var tooMuch *http.MaxBytesError
	var full *plugin.Error
	switch {
	case errors.As(err, &tooMuch):
		return nil, release, large
	case errors.As(err, &full):
		w.Header().Set("Connection", "close")
		return nil, release, full
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, release, refused(http.StatusRequestTimeout, plugin.CodeTimeout, fmt.Sprintf("the body did not come whole within %s", s.BodyTime))
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, release, refused(http.StatusBadRequest, plugin.CodeInvalidInput, "the body did not come whole")
	}
	return io.NopCloser(bytes.NewReader(text)), release, strict(text)
}

// readable refuses what is not JSON as it is.
func readable(r *http.Request) error {
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return refused(http.StatusUnsupportedMediaType, plugin.CodeInvalidInput, "a body is sent as it is, without Content-Encoding")
	}
	types := r.Header.Values("Content-Type")
	if len(types) == 1 {
		kind, params, err := mime.ParseMediaType(types[0])
		charset, said := params["charset"]
		if err == nil && kind == "application/json" && (!said || strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	return refused(http.StatusUnsupportedMediaType, plugin.CodeInvalidInput, "a body has one Content-Type, application/json, in UTF-8")
}

// strict refuses a body that is not one JSON value, or that says something twice. What it
// holds is not repeated.
func strict(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	err := d.SkipValue()
	if err == nil {
		if _, err = d.ReadToken(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("more than one value")
	}
	at, detail := string(d.StackPointer()), "it is not one JSON value"
	if errors.Is(err, jsontext.ErrDuplicateName) {
		detail = "an object has a member twice"
	}
	return refused(http.StatusBadRequest, plugin.CodeInvalidInput, "the body is not JSON as the host reads it", Place{Pointer: at, Detail: detail})
}

// verbs is a mux whose patterns may end in a verb: {id}:cancel, current:rotate.
type verbs struct {
	*http.ServeMux
	found map[string]place // by the pattern of the mux
}

// A place is what is known of a request by its path and method alone.
type place struct {
	path  string // the pattern of the route, as the document has it
	scope string // that a token needs
}

// split returns a route as the mux has it: inside, a verb is a segment of its own.
func split(route string) string {
	if colon := strings.LastIndexByte(route, ':'); colon > strings.LastIndexByte(route, '/') {
		return route[:colon] + "/" + route[colon:]
	}
	return route
}

// HandleFunc registers a pattern.
func (v *verbs) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	v.ServeMux.HandleFunc(split(pattern), handler)
}

// enter notes the place of a route.
func (v *verbs) enter(at route) {
	v.found[split(at.method+" "+Prefix+at.path)] = place{Prefix + at.path, at.scope}
}

// route returns a request as the mux knows its path, with the place that it is for, or says that
// there is no such path or method. A path has one way to be written.
func (v *verbs) route(r *http.Request) (*http.Request, place, error) {
	nothing := refused(0, plugin.CodeNotFound, "there is nothing at this path")
	where := r.URL.Path
	if r.URL.RawPath != "" || path.Clean(where) != where || strings.Contains(where, "/:") {
		return nil, place{}, nothing
	}
	asked := func(method string) (as *http.Request, at place, found bool) {
		to := *r.URL
		if slash := strings.LastIndexByte(where, '/'); method == http.MethodPost {
			if colon := strings.LastIndexByte(where[slash:], ':'); colon > 0 {
				to.Path = where[:slash+colon] + "/" + where[slash+colon:]
			}
		}
		as = r.WithContext(r.Context())
		as.URL, as.Method = &to, method
		_, pattern := v.Handler(as)
		at, found = v.found[pattern]
		return as, at, found
	}
	if as, at, found := asked(r.Method); found {
		return as, at, nil
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, _, found := asked(method); found {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return nil, place{}, nothing
	}
	p := refused(http.StatusMethodNotAllowed, plugin.CodeInvalidInput, "this path does not take the method")
	p.header.Set("Allow", strings.Join(allowed, ", "))
	return nil, place{}, p
}
