package account_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// A vault keeps accounts as a host does.
type vault struct{ *secret.Vault }

func nameOf(k account.Key) store.SecretName {
	return store.SecretName{Tenant: k.Tenant, Owner: ":accounts", Scope: secret.User, Subject: k.Subject, Name: k.Provider}
}

func (v vault) Account(ctx context.Context, k account.Key) (string, bool, error) {
	return v.Find(ctx, secret.Need{Tenant: k.Tenant, Plugin: ":accounts", Subject: k.Subject, Name: k.Provider, Scope: plugin.SecretOfUser})
}

func (v vault) Keep(ctx context.Context, k account.Key, value string) error {
	return v.Put(ctx, nameOf(k), value, secret.By{Principal: "ada"})
}

func (v vault) Replace(ctx context.Context, k account.Key, was, value string) (bool, error) {
	return v.Vault.Replace(ctx, nameOf(k), was, value, secret.By{Principal: "ada"})
}

func (v vault) Forget(ctx context.Context, k account.Key) (bool, error) {
	return v.Delete(ctx, nameOf(k), secret.By{Principal: "ada"})
}

func (v vault) Secret(ctx context.Context, tenant, name string) (string, bool, error) {
	return v.Find(ctx, secret.Need{Tenant: tenant, Plugin: account.SecretsOwner, Name: name, Scope: plugin.SecretOfSystem})
}

// A scene is a host with one provider, where ada has an account.
type scene struct {
	*account.Accounts
	t        *testing.T
	server   *accounttest.Server
	options  account.Options
	scrubber *secret.Scrubber
	linked   []string

	mu   sync.Mutex // guards late
	late time.Duration
}

var ada = account.Key{Tenant: "t", Subject: "user::ada", Provider: "mail"}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	s := &scene{t: t, server: accounttest.New(t), scrubber: secret.NewScrubber()}
	v := vault{secret.New(st, secret.Place{Dir: dir}, s.scrubber)}
	for name, value := range map[string]string{"client": accounttest.ClientSecret, "robot": s.server.RobotKey()} {
		n := store.SecretName{Tenant: "t", Owner: account.SecretsOwner, Scope: secret.System, Name: name}
		if err := v.Put(t.Context(), n, value, secret.By{Principal: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
	s.options = account.Options{
		Providers: []account.Provider{{Name: "mail", Kind: account.OIDC, ClientID: accounttest.ClientID, ClientSecret: account.Source{Secret: "client"}, Issuer: s.server.URL,
			Service: &account.Service{Key: account.Source{Secret: "robot"}, Subjects: []string{"*@team.example.com"}}}},
		Keeper: v, Know: s.scrubber.Know,
		Addresses: func(context.Context, account.Key) ([]string, error) { return s.linked, nil },
		Now:       func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return time.Now().Add(s.late) },
	}
	s.Accounts = account.New(s.options)
	return s
}

func (s *scene) wait(d time.Duration) { s.mu.Lock(); defer s.mu.Unlock(); s.late += d }

// browse goes where a link leads.
func (s *scene) browse(link string) (status int, page string) {
	s.t.Helper()
	resp, err := http.Get(link)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// connect connects ada's account, as a user who agrees to everything.
func (s *scene) connect(scopes ...string) (account.Account, error) {
	s.t.Helper()
	c, err := s.Begin(s.t.Context(), ada, scopes)
	if err != nil {
		return account.Account{}, err
	}
	defer c.Close()
	s.browse(c.URL)
	return c.Wait(s.t.Context())
}

func (s *scene) connected(scopes ...string) account.Account {
	s.t.Helper()
	got, err := s.connect(scopes...)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func userOf(scopes ...string) account.Use {
	return account.Use{Tenant: "t", Subject: "user::ada", Name: "digest/list", Operation: &plugin.Auth{Provider: "mail", Mode: account.User, Scopes: scopes}}
}

func (s *scene) resolve(u account.Use, ask account.Ask) (token, target string, err error) {
	s.t.Helper()
	ask.Provider = cmp.Or(ask.Provider, "mail")
	answer, err := s.Resolve(s.t.Context(), u, ask)
	text := func(p *string) string {
		if p == nil {
			return "null"
		}
		return *p
	}
	return text(answer.Token), text(answer.Target), err
}

// refused wants an error of that code whose message has all of the words.
func refused(t *testing.T, err error, code plugin.Code, words ...string) {
	t.Helper()
	if plugin.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestAUserConnectsAnAccount(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	got := s.connected("mail.read")
	if got.Email != "ada@example.com" || got.Subject != "ada-1" || !got.Renewable || !slices.Contains(got.Scopes, "mail.read") {
		t.Errorf("got %+v", got)
	}
	token, target, err := s.resolve(userOf("mail.read"), account.Ask{})
	if err != nil || !s.server.Valid(token) || target != "ada@example.com" {
		t.Errorf("got %s, %s, %v", token, target, err)
	}
	if text := s.scrubber.Text("a token " + token + " in a text"); strings.Contains(text, token) {
		t.Errorf("the token is not taken out of texts: %s", text)
	}
	// What was agreed to before is asked for again, beside what is new.
	if got := s.connected("mail.send"); !slices.Contains(got.Scopes, "mail.read") || !slices.Contains(got.Scopes, "mail.send") {
		t.Errorf("got %q", got.Scopes)
	}
	other := userOf("mail.read")
	other.Subject = "user::bob"
	_, _, err = s.resolve(other, account.Ask{})
	refused(t, err, plugin.CodeMissingIdentity, "mortise connect mail --scopes 'mail.read'")
}

func TestAnAccountWithoutAddressIsMe(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.server.Email = ""
	s.connected("mail.read")
	if _, target, err := s.resolve(userOf("mail.read"), account.Ask{}); err != nil || target != "me" {
		t.Errorf("got %s, %v", target, err)
	}
}

func TestWrongAnswersConnectNothing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*accounttest.Server)
		says   string
	}{
		"wrong nonce":       {func(s *accounttest.Server) { s.Nonce = "another" }, "nonce"},
		"wrong issuer":      {func(s *accounttest.Server) { s.Issuer = "https://other.example.com" }, "ID token does not hold"},
		"wrong audience":    {func(s *accounttest.Server) { s.Audience = "other" }, "ID token does not hold"},
		"forged ID token":   {func(s *accounttest.Server) { s.Forge = true }, "ID token does not hold"},
		"broken token page": {func(s *accounttest.Server) { s.Broken = 500 }, "status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			row.change(s.server)
			_, err := s.connect("mail.read")
			refused(t, err, plugin.CodeUnavailable, row.says)
			if found, err := s.Find(t.Context(), ada); found != nil || err != nil {
				t.Errorf("%+v, %v is kept", found, err)
			}
		})
	}
}

func TestAWrongStateIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	c, err := s.Begin(t.Context(), ada, []string{"mail.read"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	link, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	back := link.Query().Get("redirect_uri")
	state := link.Query().Get("state")
	for _, wrong := range []string{"?code=stolen&state=other", "?code=stolen", "/../?code=stolen&state=" + state, "x?code=stolen&state=" + state} {
		if status, _ := s.browse(back + wrong); status < 400 {
			t.Errorf("%s: status %d", wrong, status)
		}
	}
	if status, page := s.browse(c.URL); status != http.StatusOK || !strings.Contains(page, "is connected") { // it was still waited for
		t.Errorf("%d %s", status, page)
	}
	if _, err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, _ := s.browse(back + "?code=again&iss=" + url.QueryEscape(s.server.URL) + "&state=" + state); status != http.StatusBadRequest {
		t.Errorf("a second answer: status %d", status)
	}
}

func TestACodeOfAnotherIssuerIsNotUsed(t *testing.T) {
	t.Parallel()
	for _, iss := range []string{"", "&iss=https://other.example.com"} {
		s := newScene(t)
		c, err := s.Begin(t.Context(), ada, nil)
		if err != nil {
			t.Fatal(err)
		}
		link, _ := url.Parse(c.URL)
		s.browse(link.Query().Get("redirect_uri") + "?code=x&state=" + link.Query().Get("state") + iss)
		_, err = c.Wait(t.Context())
		refused(t, err, plugin.CodeUnavailable, "another issuer")
		c.Close()
	}
}

func TestConnectingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	c, err := s.Begin(t.Context(), ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Wait(ctx)
	refused(t, err, plugin.CodeCancelled)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	link, _ := url.Parse(c.URL)
	if resp, err := http.Get(link.Query().Get("redirect_uri")); err == nil {
		resp.Body.Close()
		t.Error("the address is still served")
	}
}

func TestATokenIsRenewedOnceForAll(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.connected("mail.read")
	first, _, err := s.resolve(userOf("mail.read"), account.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		s.wait(time.Hour - time.Minute) // a minute before its end
		tokens := make([]string, 16)
		var wg sync.WaitGroup
		for i := range tokens {
			wg.Go(func() {
				answer, err := s.Resolve(t.Context(), userOf("mail.read"), account.Ask{Provider: "mail"})
				if err != nil {
					t.Error(err)
					return
				}
				tokens[i] = *answer.Token
			})
		}
		wg.Wait()
		if slices.Sort(tokens); len(slices.Compact(tokens)) != 1 || tokens[0] == first || !s.server.Valid(tokens[0]) {
			t.Fatalf("round %d: %q", round, tokens)
		}
		if s.server.Renewals != round+1 {
			t.Fatalf("round %d: the provider was asked %d times", round, s.server.Renewals)
		}
	}
}

func TestARevokedAccountIsMissing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.connected("mail.read")
	s.server.RevokeAll()
	s.wait(2 * time.Hour)
	for range 2 { // found out, then remembered
		_, _, err := s.resolve(userOf("mail.read"), account.Ask{})
		refused(t, err, plugin.CodeMissingIdentity, "revoked", "mortise connect mail")
	}
	if s.server.Renewals != 1 {
		t.Errorf("the provider was asked %d times", s.server.Renewals)
	}
	refused(t, s.Check(t.Context(), userOf("mail.read")), plugin.CodeMissingIdentity, "digest/list", "mortise connect mail")
	s.connected("mail.read")
	if _, _, err := s.resolve(userOf("mail.read"), account.Ask{}); err != nil {
		t.Error(err)
	}
}

// A quicker is a round tripper that lets a concurrent request overtake the
// first.
type quicker struct {
	once sync.Once
	do   func()
}

// RoundTrip implements [http.RoundTripper].
func (q *quicker) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		q.once.Do(q.do)
	}
	return http.DefaultTransport.RoundTrip(req)
}

func TestAnotherHostWasQuicker(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.connected("mail.read")
	s.wait(2 * time.Hour)
	theirs := ""
	o := s.options
	o.Transport = &quicker{do: func() {
		var err error
		if theirs, _, err = s.resolve(userOf("mail.read"), account.Ask{}); err != nil {
			t.Error(err)
		}
	}}
	answer, err := account.New(o).Resolve(t.Context(), userOf("mail.read"), account.Ask{Provider: "mail"})
	if err != nil || *answer.Token != theirs || s.server.Renewals != 2 {
		t.Errorf("got %v after %d renewals", err, s.server.Renewals)
	}
}

func TestHostsRenewOneAfterAnother(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.connected("mail.read")
	s.wait(2 * time.Hour)
	var between sync.Mutex
	s.options.Lock = func(context.Context, string) (func(), error) { between.Lock(); return between.Unlock, nil }
	var wg sync.WaitGroup
	for range 4 {
		a := account.New(s.options)
		wg.Go(func() {
			answer, err := a.Resolve(t.Context(), userOf("mail.read"), account.Ask{Provider: "mail"})
			if err != nil || !s.server.Valid(*answer.Token) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if s.server.Renewals != 1 {
		t.Errorf("the provider was asked %d times", s.server.Renewals)
	}
}

func TestATokenThatEndedIsNotUsedWhileItsProviderIsSilent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.connected("mail.read")
	s.server.Broken = http.StatusServiceUnavailable
	s.wait(time.Hour - time.Minute)
	token, _, err := s.resolve(userOf("mail.read"), account.Ask{})
	if err != nil || !s.server.Valid(token) {
		t.Fatalf("a minute before its end: %v", err)
	}
	s.wait(2 * time.Minute)
	_, _, err = s.resolve(userOf("mail.read"), account.Ask{})
	refused(t, err, plugin.CodeUnavailable, "status 503")
	if !plugin.AsError(err).Retryable || strings.Contains(err.Error(), "refresh-") {
		t.Errorf("got %+v", err)
	}
	s.server.Broken = 0
	if _, _, err := s.resolve(userOf("mail.read"), account.Ask{}); err != nil {
		t.Error(err)
	}
}

func TestScopesThatWereNotGrantedAreMissing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.server.Grant = "openid email mail.read"
	s.connected("mail.read", "mail.send")
	err := s.Check(t.Context(), userOf("mail.read", "mail.send"))
	refused(t, err, plugin.CodeMissingIdentity, "without mail.send", "mortise connect mail --scopes 'mail.read mail.send'")
	var details struct {
		Provider, Mode string
		Scopes         []string
	}
	if err := json.Unmarshal(plugin.AsError(err).Details, &details); err != nil || details.Provider != "mail" || details.Mode != "user" || len(details.Scopes) != 2 {
		t.Errorf("got %+v, %v", details, err)
	}
	optional := userOf("mail.send")
	optional.Operation.Optional = true
	if err := s.Check(t.Context(), optional); err != nil {
		t.Error(err)
	}
	if token, target, err := s.resolve(optional, account.Ask{}); err != nil || token != "null" || target != "null" {
		t.Errorf("got %s, %s, %v", token, target, err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.connected("mail.read")
	overlay := func(text string) json.RawMessage { return json.RawMessage(`{"auth":{"mail":` + text + `}}`) }
	auth := func(mode string, allowed ...string) *plugin.Auth {
		return &plugin.Auth{Provider: "mail", Mode: mode, AllowedModes: allowed, Scopes: []string{"mail.read"}}
	}
	for name, row := range map[string]struct {
		auth    *plugin.Auth
		overlay json.RawMessage
		ask     account.Ask
		target  string
		token   bool
		code    plugin.Code

		unsupported bool
	}{
		"user":                            {auth: auth("user"), token: true, target: "ada@example.com"},
		"service account has no target":   {auth: auth("service_account"), token: true, target: "null"},
		"no mode chosen":                  {auth: auth("", "user", "service_account"), target: "null"},
		"nothing declared":                {target: "null"},
		"chosen among the allowed":        {auth: auth("", "user", "service_account"), overlay: overlay(`{"mode":"user"}`), token: true, target: "ada@example.com"},
		"chosen in place of the declared": {auth: auth("user", "user", "service_account"), overlay: overlay(`{"mode":"service_account"}`), token: true, target: "null"},
		"chosen and not declared":         {auth: auth("user"), overlay: overlay(`{"mode":"service_account"}`), token: true, target: "null"},
		"chosen delegate of the caller":   {auth: auth("user"), overlay: overlay(`{"mode":"domain_delegate"}`), token: true, target: "ada@example.com"},
		"chosen delegate of another":      {auth: auth("user"), overlay: overlay(`{"mode":"domain_delegate","subject":"ceo@example.com"}`), code: plugin.CodeServiceDenied},
		"chosen and unknown":              {auth: auth("user"), overlay: overlay(`{"mode":"root"}`), code: plugin.CodeServiceDenied},
		"asked for, and another chosen":   {auth: auth("user"), overlay: overlay(`{"mode":"user"}`), ask: account.Ask{Mode: "service_account"}, code: plugin.CodeServiceDenied},
		"scopes that are chosen":          {overlay: overlay(`{"mode":"service_account","scopes":["mail.read"]}`), token: true, target: "null"},
		"chosen alone":                    {overlay: overlay(`{"mode":"user"}`), token: true, target: "ada@example.com"},
		"chosen alone, without scopes":    {overlay: overlay(`{"mode":"service_account"}`), code: plugin.CodeMissingIdentity},
		"asked for and not declared":      {auth: auth("user"), ask: account.Ask{Mode: "domain_delegate", Subject: "ada@example.com"}, code: plugin.CodeServiceDenied},
		"delegate of the caller":          {auth: auth("domain_delegate"), token: true, target: "ada@example.com"},
		"delegate of a named domain":      {auth: auth("domain_delegate"), ask: account.Ask{Subject: "bob@team.example.com"}, token: true, target: "bob@team.example.com"},
		"delegate of another user":        {auth: auth("domain_delegate"), ask: account.Ask{Subject: "ceo@example.com"}, code: plugin.CodeServiceDenied},
		"delegate of another user chosen": {auth: auth("domain_delegate"), overlay: overlay(`{"subject":"ceo@example.com"}`), code: plugin.CodeServiceDenied},
		"delegate of another than chosen": {auth: auth("domain_delegate"), overlay: overlay(`{"subject":"ada@example.com"}`), ask: account.Ask{Subject: "bob@team.example.com"}, code: plugin.CodeServiceDenied},
		"scope that is not declared":      {auth: auth("service_account"), ask: account.Ask{Scopes: []string{"mail.send"}}, code: plugin.CodeServiceDenied},
		"asked of an unknown provider":    {auth: auth("user"), ask: account.Ask{Provider: "elsewhere", Mode: "user"}, code: plugin.CodeMissingIdentity, unsupported: true},
		"unknown mode":                    {auth: auth("robot"), code: plugin.CodeServiceDenied},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{Accounts: s.Accounts, t: t, server: s.server}
			u := account.Use{Tenant: "t", Subject: "user::ada", Name: "digest/list", Operation: row.auth, Overlay: row.overlay}
			token, target, err := s.resolve(u, row.ask)
			if row.code != "" {
				refused(t, err, row.code)
				if said := strings.Contains(string(plugin.AsError(err).Details), `"unsupported":true`); said != row.unsupported {
					t.Errorf("the details are %s", plugin.AsError(err).Details)
				}
				return
			}
			if err != nil || target != row.target || (token != "null") != row.token || row.token && !s.server.Valid(token) {
				t.Errorf("got %s, %s, %v", token, target, err)
			}
		})
	}
}

func TestWhomADelegateStandsInFor(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u := account.Use{Tenant: "t", Subject: "user::ada", Name: "digest/list",
		Operation: &plugin.Auth{Provider: "mail", Mode: account.DomainDelegate, Scopes: []string{"mail.read"}, SubjectHint: "identity:mail_email"}}
	refused(t, s.Check(t.Context(), u), plugin.CodeMissingIdentity, "digest/list", "mortise identities link mail")
	s.server.Verified = false
	s.connected("mail.read")
	refused(t, s.Check(t.Context(), u), plugin.CodeMissingIdentity) // the provider does not vouch for the address
	s.linked = []string{"ada@corp.example.com"}
	if err := s.Check(t.Context(), u); err != nil {
		t.Error(err)
	}
	token, target, err := s.resolve(u, account.Ask{})
	if err != nil || target != "ada@corp.example.com" || !s.server.Valid(token) || !slices.Equal(s.server.Subjects(), []string{"ada@corp.example.com"}) {
		t.Errorf("got %s, %v; the provider was asked for %q", target, err, s.server.Subjects())
	}
	if again, _, err := s.resolve(u, account.Ask{}); err != nil || again != token || s.server.Minted != 1 {
		t.Errorf("it is asked for again: %v", err)
	}
	s.wait(time.Hour)
	if later, _, err := s.resolve(u, account.Ask{}); err != nil || later == token {
		t.Errorf("it is not asked for again once it ended: %v", err)
	}
	s.linked, s.server.Denied = []string{"gone@corp.example.com"}, []string{"gone@corp.example.com"}
	_, _, err = s.resolve(u, account.Ask{})
	refused(t, err, plugin.CodeMissingIdentity, "unauthorized_client")
}

func TestRequiredIdentitiesAreCheckedBefore(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	u := account.Use{Tenant: "t", Subject: "user::ada", Name: "digest/list", Identities: []plugin.Auth{{Provider: "mail", Scopes: []string{"mail.read"}}}}
	refused(t, s.Check(t.Context(), u), plugin.CodeMissingIdentity, "mortise connect mail")
	u.Identities[0].Optional = true
	if err := s.Check(t.Context(), u); err != nil {
		t.Error(err)
	}
	robot := account.Use{Tenant: "t", Subject: "user::unknown", Name: "digest/list", Operation: &plugin.Auth{Provider: "elsewhere", Mode: account.ServiceAccount, Scopes: []string{"a"}}}
	refused(t, s.Check(t.Context(), robot), plugin.CodeMissingIdentity, "elsewhere")
	if robot.OwnOnly = true; s.Check(t.Context(), robot) != nil {
		t.Error("another mode than a user's is looked at")
	}
	u.Overlay = json.RawMessage(`{"auth":{"elsewhere":{"mode":"user"}}}`)
	refused(t, s.Check(t.Context(), u), plugin.CodeMissingIdentity, "elsewhere", "mortise.yaml")
	u.Overlay, u.Identities[0].Optional = nil, false
	s.connected("mail.read")
	if err := s.Check(t.Context(), u); err != nil {
		t.Error(err)
	}
}

func TestARemovedAccountIsRevoked(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.connected("mail.read")
	gone, err := s.Remove(t.Context(), ada)
	if err != nil || !gone.Revoked || gone.Email != "ada@example.com" || s.server.Left() != 0 {
		t.Errorf("got %+v, %v; %d are left", gone, err, s.server.Left())
	}
	if found, err := s.Find(t.Context(), ada); found != nil || err != nil {
		t.Errorf("%+v, %v is left", found, err)
	}
	_, err = s.Remove(t.Context(), ada)
	refused(t, err, plugin.CodeNotFound)
}

func TestOAuthWithoutOpenID(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.options.Providers = []account.Provider{{Name: "mail", Kind: account.GitHub, ClientID: accounttest.ClientID, ClientSecret: account.Source{Secret: "client"},
		AuthURL: s.server.URL + "/authorize", TokenURL: s.server.URL + "/token", UserURL: s.server.URL + "/me"}}
	s.Accounts = account.New(s.options)
	got := s.connected("repo")
	if got.Email != "ada@example.com" || got.Subject != "ada-1" {
		t.Errorf("got %+v", got)
	}
	if _, _, err := s.resolve(userOf("repo:status"), account.Ask{}); err != nil { // which is part of repo
		t.Error(err)
	}
	if gone, err := s.Remove(t.Context(), ada); err != nil || gone.Revoked || !strings.Contains(gone.Problem, "own page") {
		t.Errorf("got %+v, %v", gone, err)
	}
}
