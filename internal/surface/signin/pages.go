package signin

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// The style of all pages, and the script of those that are opened by a link: it moves the
// secret out of the address into the form. Both are allowed by their hashes.
const (
	style  = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}button,input,select{font:inherit;padding:.4rem .8rem}`
	script = `const s=location.hash.slice(1);if(s){document.getElementById("secret").value=s;history.replaceState(null,"",location.pathname)}`
)

// A view is what a page shows.
type view struct {
	Title, Text, Asker, Action, Button, Console string
	Providers                                   []choice
}

// A choice is a provider to sign in with.
type choice struct{ Name, Address string }

// A page is the HTML of a view, below its title. Pages are no html/template, which calls methods by
// name, so that the linker would keep every method in the program; all text goes through [fill].
type page func(v view) string

// fill puts texts into a piece of HTML, escaped for content and for quoted attributes. An address
// among them must be a path of this host.
func fill(piece string, texts ...string) string {
	escaped := make([]any, len(texts))
	for i, text := range texts {
		escaped[i] = html.EscapeString(text)
	}
	return fmt.Sprintf(piece, escaped...)
}

// optional is a piece about a text, "" where there is none.
func optional(piece, text string) string {
	if text == "" {
		return ""
	}
	return fill(piece, text)
}

func messagePage(v view) string {
	return fill("<p>%s</p>", v.Text) + optional("<p><code>%s</code></p>", v.Asker) + `<p><a href="/auth/">Sign in</a></p>`
}

func choosePage(v view) string {
	if len(v.Providers) == 0 {
		return fill("<p>%s</p>", v.Text)
	}
	var items strings.Builder
	for _, p := range v.Providers {
		items.WriteString(fill(`<li><a href="%s">%s</a></li>`, p.Address, p.Name))
	}
	return "<ul>" + items.String() + "</ul>"
}

func homePage(v view) string {
	return fill("<p>%s</p>", v.Text) +
		optional(`<p>Who invited you has seen the code, and could have used it. They cannot count as a second person beside you until you say that you alone have the account that you signed in with.</p>
<form method="post" action="%s"><button>I alone have this account</button></form>`, v.Action) +
		optional(`<p><a href="%s">Open the console</a></p>`, v.Console) +
		`<form method="post" action="/auth/sign-out"><button>Sign out</button></form>`
}

func formPage(v view) string {
	var providers strings.Builder
	for _, p := range v.Providers {
		providers.WriteString(fill("<option>%s</option>", p.Name))
	}
	with := ""
	if providers.Len() > 0 {
		with = `<p><label>With <select name="provider">` + providers.String() + `</select></label></p>`
	}
	return fill(`<p>%s</p><form method="post" action="%s"><p><label>Code <input id="secret" name="secret" autocomplete="off" required></label></p>
`, v.Text, v.Action) + with + fill("<button>%s</button></form>\n", v.Button) + "<script>" + script + "</script>"
}

var (
	invitationPage = view{Title: "Invitation", Text: "Sign in to become a user of this host with your account. The code counts once.", Action: "/auth/invitation", Button: "Sign in"}
	setupPage      = view{Title: "Sign in as the owner", Text: "Sign in as the owner of this host. The code counts once, and on this machine.", Action: "/auth/setup", Button: "Sign in"}
)

func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var styleSource, scriptSource = hashSource(style), hashSource(script)

// headers are those of every answer. A form may lead on to a provider, since browsers hold
// redirects against form-action as well.
func (s *Server) headers(w http.ResponseWriter) {
	forms := []string{"'self'"}
	for _, p := range s.providers {
		if u, err := url.Parse(p.Issuer); err == nil {
			forms = append(forms, u.Scheme+"://"+u.Host)
		}
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+styleSource+"; script-src "+scriptSource+
		"; form-action "+strings.Join(forms, " ")+"; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func (s *Server) show(w http.ResponseWriter, status int, body page, v view) {
	head := fill(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%s</title>`, v.Title) + "<style>" + style + "</style>" + fill("<h1>%s</h1>", v.Title)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, head+body(v)) // the browser may be gone
}

func (s *Server) fail(w http.ResponseWriter, status int, text string) {
	s.show(w, status, messagePage, view{Title: "Not signed in", Text: text})
}

// stranger says to who has an account with a provider, and none here, whom to ask.
func (s *Server) stranger(w http.ResponseWriter, in host.SignIn) {
	s.show(w, http.StatusForbidden, messagePage, view{
		Title: "Not a user of this host", Text: "Your account with the provider is no user's of this host. Ask its owner for an invitation, and tell them this:",
		Asker: in.Issuer + " " + in.Subject,
	})
}

// page answers with the page that a link with a secret opens.
func (s *Server) page(v view) http.HandlerFunc {
	if len(s.providers) > 1 && v.Action == invitationPage.Action {
		for _, p := range s.providers {
			v.Providers = append(v.Providers, choice{Name: p.Name})
		}
	}
	return func(w http.ResponseWriter, r *http.Request) { s.show(w, http.StatusOK, formPage, v) }
}

// choose asks which provider to sign in with.
func (s *Server) choose(w http.ResponseWriter, next, prompt string) {
	v := view{Title: "Sign in", Text: "No provider to sign in with is configured. The owner of the host names them under server.sign_in in mortise.yaml."}
	for _, p := range s.providers {
		q := url.Values{"provider": {p.Name}, "next": {next}}
		if prompt == "login" {
			q.Set("prompt", prompt)
		}
		v.Providers = append(v.Providers, choice{p.Name, "/auth/sign-in?" + q.Encode()})
	}
	s.show(w, http.StatusOK, choosePage, v)
}

// home shows who is signed in, or the way to sign in.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	secret, err := s.cookie(r, s.sessionCookie())
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	c, err := s.caller(r, secret)
	switch {
	case plugin.CodeOf(err) == plugin.CodeUnauthenticated:
		s.choose(w, Prefix, "")
	case err != nil:
		s.refuse(w, r, err)
	default:
		v := view{Title: "Signed in", Text: "You are " + c.Principal.Member() + ".", Console: s.Console}
		if len(c.Principal.Groups) > 0 {
			v.Text += " Your provider has you in " + strings.Join(c.Principal.Groups, ", ") + "."
		}
		if c.Invited {
			v.Action = "/auth/own"
		}
		s.show(w, http.StatusOK, homePage, v)
	}
}
