// Package accounttest is an OpenID Connect provider for tests: it discovers, lets
// people in, gives out tokens, renews them once each and takes them back.
package accounttest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a client is known by.
const (
	ClientID     = "client-of-tests"
	ClientSecret = "not-a-real-client-secret"
	Robot        = "robot@project.example.com" // the service account
)

// A Server is a provider with one account. The holder of Lock may change its
// exported fields between requests.
type Server struct {
	*httptest.Server
	sync.Mutex

	Email    string
	Verified bool
	Told     map[string]any // what the endpoint of user information says beside, or in place of, what it says anyway
	Lifetime time.Duration  // of access tokens
	Nonce    string         // in ID tokens in place of the right one
	Issuer   string         // in ID tokens in place of the right one
	Audience string         // in ID tokens in place of the right one
	Forge    bool           // ID tokens are signed with an unpublished key
	Unsigned bool           // ID tokens have the algorithm none, and no signature
	Lapsed   bool           // ID tokens have expired
	Subject  string         // in ID tokens, ada-1 where it is empty
	AuthTime time.Time      // in ID tokens; now where it is zero and the client asked for a max_age
	Timeless bool           // ID tokens never say when the person was asked, against what the standard has
	Keep     bool           // a refresh token is good for more than one use
	Broken   int            // the status that the token endpoint answers with, 0 for none
	Grant    string         // the scopes that are granted in place of those asked for
	Denied   []string       // for whom the robot does not stand in
	Claims   map[string]any // in ID tokens beside, or in place of, the others; nil takes one out
	Asked    int            // how often its keys were asked for

	Renewals int // asked for
	Minted   int // tokens of the robot

	t        *testing.T
	key      *rsa.PrivateKey
	kid      int
	robot    *rsa.PrivateKey
	n        int
	codes    map[string]url.Values // what each was asked for
	refresh  map[string]string     // the scopes of each
	access   map[string]bool
	given    []string
	subjects []string // for whom the robot stood in
}

// New returns a provider that is gone when the test is.
func New(t *testing.T) *Server {
	s := &Server{t: t, Email: "ada@example.com", Verified: true, Lifetime: time.Hour, key: newKey(t), kid: 1, robot: newKey(t),
		codes: map[string]url.Values{}, refresh: map[string]string{}, access: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", s.discovery)
	mux.HandleFunc("GET /keys", s.keys)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /revoke", s.revoke)
	mux.HandleFunc("GET /me", s.me)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func newKey(t *testing.T) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// RobotKey is the key file of the service account.
func (s *Server) RobotKey() string {
	der, err := x509.MarshalPKCS8PrivateKey(s.robot)
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{"type": "service_account", "client_email": Robot, "private_key_id": "robot-1", "token_uri": s.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// Valid reports whether an access token is good here.
func (s *Server) Valid(token string) bool {
	s.Lock()
	defer s.Unlock()
	return s.access[token]
}

// Given returns all tokens that were given out.
func (s *Server) Given() []string {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.given)
}

// Subjects returns for whom the robot stood in, "" for itself.
func (s *Server) Subjects() []string {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.subjects)
}

// RevokeAll takes everything back that was given out.
func (s *Server) RevokeAll() {
	s.Lock()
	defer s.Unlock()
	clear(s.refresh)
	clear(s.access)
}

// Left returns how many refresh tokens are good.
func (s *Server) Left() int {
	s.Lock()
	defer s.Unlock()
	return len(s.refresh)
}

func (s *Server) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "jwks_uri": s.URL + "/keys",
		"revocation_endpoint": s.URL + "/revoke", "userinfo_endpoint": s.URL + "/me", "id_token_signing_alg_values_supported": []string{"RS256"},
		"scopes_supported": []string{"openid", "email", "offline_access", "mail.read", "mail.send"}, "authorization_response_iss_parameter_supported": true,
	})
}

func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	s.Lock()
	defer s.Unlock()
	s.Asked++
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": strconv.Itoa(s.kid),
		"n": encode(s.key.N.Bytes()), "e": encode(big.NewInt(int64(s.key.E)).Bytes())}}})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("state") == "" {
		http.Error(w, "not a request for a code with PKCE", http.StatusBadRequest)
		return
	}
	s.Lock()
	code := s.next("code")
	s.codes[code] = q
	s.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// next returns a token that cannot be mistaken for text.
func (s *Server) next(kind string) string {
	s.n++
	token := fmt.Sprintf("%s-%d-%s", kind, s.n, rand.Text())
	if kind != "code" {
		s.given = append(s.given, token)
	}
	return token
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	if s.Broken != 0 {
		answer(w, s.Broken, map[string]string{"error": "server_error"})
		return
	}
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request")
		return
	}
	if r.Form.Get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		s.mint(w, r.Form.Get("assertion"))
		return
	}
	if !client(r) {
		refuse(w, "invalid_client")
		return
	}
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		asked, found := s.codes[r.Form.Get("code")]
		delete(s.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !found || asked.Get("redirect_uri") != r.Form.Get("redirect_uri") || asked.Get("code_challenge") != encode(sum[:]) {
			refuse(w, "invalid_grant")
			return
		}
		s.give(w, asked.Get("scope"), asked.Get("nonce"), asked.Has("max_age"))
	case "refresh_token":
		s.Renewals++
		token := r.Form.Get("refresh_token")
		scope, found := s.refresh[token]
		if !found {
			refuse(w, "invalid_grant")
			return
		}
		if !s.Keep {
			delete(s.refresh, token)
		}
		s.give(w, scope, "", false)
	default:
		refuse(w, "unsupported_grant_type")
	}
}

func client(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.Form.Get("client_id"), r.Form.Get("client_secret")
	}
	return id == ClientID && secret == ClientSecret
}

func (s *Server) give(w http.ResponseWriter, scope, nonce string, asked bool) {
	if s.Grant != "" {
		scope = s.Grant
	}
	access, refresh := s.next("access"), s.next("refresh")
	s.access[access], s.refresh[refresh] = true, scope
	now := time.Now()
	claims := map[string]any{"iss": or(s.Issuer, s.URL), "aud": or(s.Audience, ClientID), "sub": or(s.Subject, "ada-1"), "email": s.Email, "email_verified": s.Verified,
		"iat": now.Unix(), "exp": now.Add(24 * time.Hour).Unix(), "nonce": or(s.Nonce, nonce)}
	if s.Lapsed {
		claims["exp"] = now.Add(-time.Hour).Unix()
	}
	switch {
	case s.Timeless:
	case !s.AuthTime.IsZero():
		claims["auth_time"] = s.AuthTime.Unix()
	case asked:
		claims["auth_time"] = now.Unix()
	}
	for name, value := range s.Claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	key := s.key
	if s.Forge {
		key = s.robot
	}
	answer(w, http.StatusOK, map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": int(s.Lifetime.Seconds()),
		"scope": scope, "id_token": s.sign(key, claims)})
}

// mint gives the robot a token for what it signed.
func (s *Server) mint(w http.ResponseWriter, assertion string) {
	signed, signature, _ := cutLast(assertion)
	sum := sha256.Sum256([]byte(signed))
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || rsa.VerifyPKCS1v15(&s.robot.PublicKey, crypto.SHA256, sum[:], raw) != nil {
		refuse(w, "invalid_grant")
		return
	}
	_, payload, _ := strings.Cut(signed, ".")
	raw, err = base64.RawURLEncoding.DecodeString(payload)
	var claims struct{ Iss, Aud, Sub, Scope string }
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Iss != Robot || claims.Aud != s.URL+"/token" || claims.Scope == "" {
		refuse(w, "invalid_grant")
		return
	}
	if slices.Contains(s.Denied, claims.Sub) {
		refuse(w, "unauthorized_client")
		return
	}
	s.Minted++
	s.subjects = append(s.subjects, claims.Sub)
	token := s.next("robot")
	s.access[token] = true
	answer(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(s.Lifetime.Seconds())})
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	if r.ParseForm() != nil || !client(r) {
		refuse(w, "invalid_client")
		return
	}
	delete(s.refresh, r.Form.Get("token"))
	delete(s.access, r.Form.Get("token"))
}

func (s *Server) me(w http.ResponseWriter, r *http.Request) {
	if !s.Valid(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	said := map[string]any{"sub": "ada-1", "login": "ada", "id": 7, "email": s.Email}
	maps.Copy(said, s.Told)
	answer(w, http.StatusOK, said)
}

func (s *Server) sign(key *rsa.PrivateKey, claims any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		s.t.Error(err)
	}
	if s.Unsigned {
		return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(payload) + "."
	}
	text := encode([]byte(`{"alg":"RS256","kid":"`+strconv.Itoa(s.kid)+`","typ":"JWT"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		s.t.Error(err)
	}
	return text + "." + encode(signature)
}

// Machine returns a token that the provider signs for a program, for an audience: in force
// for five minutes. claims are in it beside, or in place of, what it has otherwise; nil takes
// one out.
func (s *Server) Machine(audience, subject string, claims map[string]any) string {
	s.Lock()
	defer s.Unlock()
	key := s.key
	if s.Forge {
		key = s.robot
	}
	return s.sign(key, machine(s.URL, audience, subject, claims))
}

func machine(issuer, audience, subject string, claims map[string]any) map[string]any {
	now := time.Now()
	all := map[string]any{"iss": issuer, "aud": audience, "sub": subject, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// Confused returns such a token that says it is signed with HMAC, by the public key as the
// secret: who takes the algorithm from the token would take it.
func (s *Server) Confused(audience, subject string) string {
	s.Lock()
	defer s.Unlock()
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		s.t.Fatal(err)
	}
	payload, err := json.Marshal(machine(s.URL, audience, subject, nil))
	if err != nil {
		s.t.Fatal(err)
	}
	text := encode([]byte(`{"alg":"HS256","kid":"`+strconv.Itoa(s.kid)+`","typ":"JWT"}`)) + "." + encode(payload)
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// Rotate has the provider sign with another key, and publish that alone.
func (s *Server) Rotate() {
	key := newKey(s.t)
	s.Lock()
	defer s.Unlock()
	s.key, s.kid = key, s.kid+1
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, '.')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func or(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

func refuse(w http.ResponseWriter, code string) {
	answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": "as the test wants it"})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
