// Package signin signs people in with a browser: the pages and redirects under /auth/, and
// the cookie by which a request names who is signed in.
//
// Who a person is, is decided by package host, from what an OpenID Connect provider has
// signed: its issuer and subject, and never an email address. This package sees to it that
// an answer of a provider belongs to the browser that asked for it.
package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Prefix is where all of it begins.
const Prefix = "/auth/"

// Bounds of what is answered.
const (
	flowTime   = 10 * time.Minute // from the start of a sign-in to its answer
	maxFlows   = 4096
	maxForm    = 8 << 10 // bytes
	maxNext    = 1024
	startRate  = 5 // sign-ins from one address a second
	startBurst = 50
	lookRate   = 100 // cookies from one address a second that are of no session, and
	lookBurst  = 500 // so many at once
	addresses  = 10_000
	workTime   = 40 * time.Second // of one request, with what it asks of a provider
)

// People begins, finds and ends sessions. [host.SignIns] does.
type People interface {
	Begin(ctx context.Context, in host.SignIn) (secret string, expires time.Time, err error)
	BeginOwner(ctx context.Context, replaces string) (secret string, expires time.Time, err error)
	Caller(ctx context.Context, secret, from string) (host.Caller, error)
	End(ctx context.Context, secret string) error
	Own(ctx context.Context, secret string) error
}

// Options say who may sign in, and where.
type Options struct {
	People    People
	Base      string // the address at which browsers reach the host, https://HOST
	Providers []Provider
	Setup     *Setup                       // the first sign-in of the owner; nil where there is none
	Console   string                       // the path of the console, which the owner goes on to; "" where there is none
	Address   func(r *http.Request) string // returns the address of the client; that of the connection if it is nil
	Log       *slog.Logger
}

// A Server answers under [Prefix]. It is safe for concurrent use.
type Server struct {
	Options
	host      string // of Base
	secure    bool
	providers []*provider
	groups    map[string]bool // that providers may give
	flows     *flows
	starts    *ratelimit.Limiter[string]
	looks     *ratelimit.Limiter[string] // by address
	mux       *http.ServeMux
}

// New returns what answers under [Prefix].
func New(o Options) (*Server, error) {
	u, err := url.Parse(o.Base)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is no address at which browsers reach the host", o.Base)
	}
	if o.Address == nil {
		o.Address = clientaddr.Proxies(nil).Of
	}
	s := &Server{
		Options: o, host: u.Host, secure: u.Scheme == "https", flows: newFlows(), groups: map[string]bool{}, starts: ratelimit.New[string](startRate, startBurst, addresses),
		looks: ratelimit.New[string](lookRate, lookBurst, addresses), mux: http.NewServeMux(),
	}
	for _, p := range o.Providers {
		s.providers = append(s.providers, newProvider(p, o.Base+Prefix+"callback/"+p.Name))
		for _, groups := range p.Groups {
			for _, group := range groups {
				s.groups[group] = true
			}
		}
	}
	s.mux.HandleFunc("GET /auth/{$}", s.home)
	s.mux.HandleFunc("GET /auth/sign-in", s.start)
	s.mux.HandleFunc("GET /auth/callback/{provider}", s.callback)
	s.mux.HandleFunc("POST /auth/sign-out", s.form(s.signOut))
	s.mux.HandleFunc("POST /auth/own", s.form(s.own))
	s.mux.HandleFunc("GET /auth/invitation", s.page(invitationPage))
	s.mux.HandleFunc("POST /auth/invitation", s.form(s.invitation))
	s.mux.HandleFunc("GET /auth/setup", s.page(setupPage))
	s.mux.HandleFunc("POST /auth/setup", s.form(s.setup))
	return s, nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if fault := recover(); fault != nil {
			s.Log.Error("a request panicked", "path", r.URL.Path, "cause", fmt.Sprint(fault), "stack", string(debug.Stack()))
			s.fail(w, http.StatusInternalServerError, "The host could not do this. Its log says why.")
		}
	}()
	s.headers(w)
	if r.Host != s.host {
		s.fail(w, http.StatusMisdirectedRequest, "This host signs people in at "+s.Base+" alone.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), workTime)
	defer cancel()
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// Caller returns who is signed in with the browser that sent a request; known is false where
// none is. A cookie alone is not enough for what changes something: the browser has to say
// that a page of this host sent the request.
func (s *Server) Caller(r *http.Request) (c host.Caller, known bool, err error) {
	secret, err := s.cookie(r, s.sessionCookie())
	if err != nil || secret == "" {
		return c, false, err
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	if site := r.Header.Get("Sec-Fetch-Site"); !safe && !s.sameOrigin(r) || safe && site != "" && site != "same-origin" && site != "none" {
		return c, false, plugin.Errorf(plugin.CodePolicyDenied, "a request with a cookie comes from a page of this host, and says so")
	}
	c, err = s.caller(r, secret)
	if plugin.CodeOf(err) == plugin.CodeUnauthenticated {
		return host.Caller{}, false, nil
	}
	return c, err == nil, err
}

// caller returns who a session is of. An address is slowed down by cookies that are of none. Groups that the configuration does not give any more
// are not in force.
func (s *Server) caller(r *http.Request, secret string) (host.Caller, error) {
	from := s.Address(r)
	if wait := s.looks.Take(clientaddr.Group(from), 1, time.Now()); wait > 0 {
		return host.Caller{}, &plugin.Error{Code: plugin.CodeRateLimited, Message: "too many cookies come from this address", RetryAfter: wait}
	}
	c, err := s.People.Caller(r.Context(), secret, from)
	if err == nil {
		s.looks.Give(clientaddr.Group(from), 1)
	}
	c.Principal.Groups = slices.DeleteFunc(slices.Clone(c.Principal.Groups), func(group string) bool { return !s.groups[group] })
	return c, err
}

// protection is what net/http has against requests that pages of other origins send.
var protection = http.NewCrossOriginProtection()

// sameOrigin reports whether a browser says that a page of this host sent a request.
func (s *Server) sameOrigin(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false // which the protection of net/http would let pass
	}
	return protection.Check(r) == nil
}

// form answers a form of this host's own pages.
func (s *Server) form(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		switch err := r.ParseForm(); {
		case !s.sameOrigin(r):
			s.fail(w, http.StatusForbidden, "This was not sent by a page of this host.")
		case err != nil:
			s.fail(w, http.StatusBadRequest, "The form cannot be read.")
		default:
			do(w, r)
		}
	}
}

func (s *Server) sessionCookie() string { return s.cookieName("mortise") }
func (s *Server) flowCookie() string    { return s.cookieName("mortise-flow") }

// cookieName is a name that no other host can set a cookie of, where the address is
// encrypted. Cookies know no ports: without, the name has the port, so that two hosts of one
// machine do not take each other's. A page of another port can still set it.
func (s *Server) cookieName(name string) string {
	if s.secure {
		return "__Host-" + name
	}
	_, port, _ := net.SplitHostPort(s.host)
	return name + "-" + cmp.Or(port, "80")
}

// cookie returns the one cookie of a name, "" if there is none. Of two, one may have been
// set by another.
func (s *Server) cookie(r *http.Request, name string) (string, error) {
	switch found := r.CookiesNamed(name); len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0].Value, nil
	}
	return "", plugin.Errorf(plugin.CodePolicyDenied, "the browser sends two cookies %s; delete its cookies of this host", name)
}

func (s *Server) setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// begun gives the browser a session that just began.
func (s *Server) begun(w http.ResponseWriter, r *http.Request, secret string, expires time.Time, next string) {
	s.setCookie(w, s.sessionCookie(), secret, time.Until(expires))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// signOut ends the session of the browser.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	secret, err := s.cookie(r, s.sessionCookie())
	if err == nil && secret != "" {
		err = s.People.End(r.Context(), secret)
	}
	s.setCookie(w, s.sessionCookie(), "", -time.Second)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, Prefix, http.StatusSeeOther)
}

// own has who is signed in say that the account is theirs alone.
func (s *Server) own(w http.ResponseWriter, r *http.Request) {
	secret, err := s.cookie(r, s.sessionCookie())
	if err == nil {
		err = s.People.Own(r.Context(), secret)
	}
	if plugin.CodeOf(err) == plugin.CodeSignInRequired {
		http.Redirect(w, r, Prefix+"sign-in?prompt=login&next="+url.QueryEscape(Prefix), http.StatusSeeOther)
		return
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, Prefix, http.StatusSeeOther)
}

// refuse shows why something was refused.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := host.AsError(err)
	level, status, text := slog.LevelInfo, http.StatusForbidden, e.Message
	switch e.Code {
	case plugin.CodeUnauthenticated, plugin.CodePolicyDenied, plugin.CodeInvalidInput, plugin.CodeLimitExceeded:
	case plugin.CodeRateLimited:
		status, text = http.StatusTooManyRequests, "Too many requests come from this address. Try again in a moment."
	case plugin.CodeUnavailable:
		level, status, text = slog.LevelWarn, http.StatusServiceUnavailable, "This cannot be done now. Try again in a moment; the host's log says why."
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
		}
	default:
		level, status, text = slog.LevelWarn, http.StatusInternalServerError, "The host could not do this. Its log says why."
	}
	s.Log.Log(r.Context(), level, "a sign-in was refused", "path", r.URL.Path, "from", s.Address(r), "code", e.Code, "cause", err.Error())
	s.fail(w, status, text)
}

// A Setup signs the owner in without a provider: by secrets that count once, for a while, and
// from this machine.
type Setup struct {
	flows *flows
}

// How long the links of a [Setup] are good for: that of the first run, and one that the owner
// asked for.
const (
	SetupLife = 30 * time.Minute
	LinkLife  = 5 * time.Minute
)

// NewSetup returns a setup without a secret.
func NewSetup() *Setup { return &Setup{newFlows()} }

// Link returns a secret that signs the owner in, once and for as long as life.
func (s *Setup) Link(life time.Duration) (secret string) {
	secret = random()
	s.flows.put(secret, flow{expires: time.Now().Add(life)})
	return secret
}

// setup signs the owner in.
func (s *Server) setup(w http.ResponseWriter, r *http.Request) {
	if s.Setup == nil || !fromHere(r) {
		s.fail(w, http.StatusForbidden, "The first sign-in is for the machine that the host runs on.")
		return
	}
	if !s.may(w, r) {
		return
	}
	if _, open := s.Setup.flows.take(r.PostForm.Get("secret"), ""); !open {
		s.fail(w, http.StatusForbidden, "This link was used or has expired.")
		return
	}
	replaces, _ := s.cookie(r, s.sessionCookie())
	secret, expires, err := s.People.BeginOwner(r.Context(), replaces)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.begun(w, r, secret, expires, cmp.Or(s.Console, Prefix))
}

// may refuses addresses from which sign-ins come too fast.
func (s *Server) may(w http.ResponseWriter, r *http.Request) bool {
	if s.starts.Take(clientaddr.Group(s.Address(r)), 1, time.Now()) > 0 {
		s.fail(w, http.StatusTooManyRequests, "Too many sign-ins come from this address. Try again in a moment.")
		return false
	}
	return true
}

// fromHere reports whether a request comes from this machine, and not over a proxy.
func fromHere(r *http.Request) bool {
	ip := net.ParseIP(clientaddr.Proxies(nil).Of(r))
	return ip != nil && ip.IsLoopback() && r.Header.Get("Forwarded") == "" && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Via") == ""
}

// local returns a path of this host that a browser may be sent on to.
func local(next string) (string, error) {
	if next == "" {
		return Prefix, nil
	}
	u, err := url.Parse(next)
	if err != nil || len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || u.Scheme != "" || u.Host != "" || u.User != nil ||
		strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }) || strings.Contains(u.Path, "\\") || strings.HasPrefix(u.Path, "//") {
		return "", errors.New("next is a path of this host")
	}
	return next, nil
}

// random returns a secret of 256 bits.
func random() string { return rand.Text() + rand.Text() }

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
