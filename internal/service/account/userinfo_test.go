package account_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// TestWhatUserInformationVouchesFor: the endpoint of user information says whether
// an address is verified, where no ID token does.
func TestWhatUserInformationVouchesFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		oauth    bool // OAuth 2 alone
		told     map[string]any
		verified bool
	}{
		"OAuth 2":                        {oauth: true, told: map[string]any{"email_verified": true}, verified: true},
		"OAuth 2, as text":               {oauth: true, told: map[string]any{"email_verified": "true"}, verified: true},
		"OAuth 2, denied":                {oauth: true, told: map[string]any{"email_verified": false}},
		"OAuth 2, silent":                {oauth: true},
		"OpenID Connect":                 {told: map[string]any{"email_verified": true}, verified: true},
		"OpenID Connect, of another":     {told: map[string]any{"email_verified": true, "email": "bob@example.com"}},
		"OpenID Connect, with a subject": {told: map[string]any{"email_verified": true, "sub": "bob-1"}},
		"OpenID Connect, denied":         {told: map[string]any{"email_verified": false}},
		"OpenID Connect, silent beside":  {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.server.Verified, s.server.Told = false, c.told
			if c.oauth {
				s.options.Providers = []account.Provider{{Name: "mail", Kind: account.GitHub, ClientID: accounttest.ClientID, ClientSecret: account.Source{Secret: "client"},
					AuthURL: s.server.URL + "/authorize", TokenURL: s.server.URL + "/token", UserURL: s.server.URL + "/me"}}
				s.Accounts = account.New(s.options)
			}
			if got := s.connected("mail.read"); got.Verified != c.verified || got.Email != "ada@example.com" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
