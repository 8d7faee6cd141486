package signin

import (
	"net/http"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
	"github.com/mortise-dev/mortise/plugin"
)

// start sends the browser to a provider, or asks which one.
func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	next, err := local(q.Get("next"))
	if err != nil {
		s.fail(w, http.StatusBadRequest, "The address to go on to is not one of this host.")
		return
	}
	name := q.Get("provider")
	if name == "" && len(s.providers) != 1 {
		s.choose(w, next, q.Get("prompt"))
		return
	}
	s.send(w, r, name, flow{next: next, fresh: q.Get("prompt") == "login"})
}

// send begins a sign-in with a provider: its state belongs to the browser, by a cookie.
func (s *Server) send(w http.ResponseWriter, r *http.Request, name string, f flow) {
	at := slices.IndexFunc(s.providers, func(p *provider) bool { return p.Name == name || name == "" && len(s.providers) == 1 })
	if at < 0 {
		s.fail(w, http.StatusNotFound, "There is no such provider. The owner of the host names them under server.sign_in.")
		return
	}
	if !s.may(w, r) {
		return
	}
	p, browser, state := s.providers[at], random(), random()
	f.from = clientaddr.Group(s.Address(r))
	f.browser, f.provider, f.nonce, f.verifier, f.began, f.expires = hashOf(browser), p.Name, random(), oauth2.GenerateVerifier(), time.Now(), time.Now().Add(flowTime)
	to, err := p.ask(r.Context(), state, &f)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.flows.put(state, f)
	s.setCookie(w, s.flowCookie(), browser, flowTime)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// callback takes the answer of a provider.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	browser, err := s.cookie(r, s.flowCookie())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	f, open := s.flows.take(q.Get("state"), browser)
	at := slices.IndexFunc(s.providers, func(p *provider) bool { return p.Name == r.PathValue("provider") })
	if !open || at < 0 || s.providers[at].Name != f.provider {
		s.refuse(w, r, plugin.Errorf(plugin.CodeUnauthenticated, "This answer belongs to no sign-in of this browser, or was used before. Sign in again."))
		return
	}
	s.setCookie(w, s.flowCookie(), "", -time.Second)
	if q.Get("error") != "" || q.Get("code") == "" {
		s.refuse(w, r, plugin.Errorf(plugin.CodeUnauthenticated, "The provider signed no one in."))
		return
	}
	in, err := s.providers[at].finish(r.Context(), q.Get("code"), q.Get("iss"), &f)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	in.Replaces, _ = s.cookie(r, s.sessionCookie())
	secret, expires, err := s.People.Begin(r.Context(), in)
	if plugin.CodeOf(err) == plugin.CodeUnauthenticated && f.invitation == "" {
		s.stranger(w, in)
		return
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.begun(w, r, secret, expires, f.next)
}

// invitation begins a sign-in by which the account becomes the invited user's.
func (s *Server) invitation(w http.ResponseWriter, r *http.Request) {
	secret := r.PostForm.Get("secret")
	if secret == "" {
		s.fail(w, http.StatusBadRequest, "The link of the invitation is not whole.")
		return
	}
	s.send(w, r, r.PostForm.Get("provider"), flow{next: Prefix, invitation: secret, fresh: true})
}
