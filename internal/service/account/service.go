package account

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/mortise-dev/mortise/plugin"
)

// maxMinted is how many tokens of service accounts are kept for the next call.
const maxMinted = 256

// A minting is what a token of a service account was asked for.
type minting struct {
	provider, subject, scopes string
	key                       [sha256.Size]byte
}

type minted struct {
	token string
	ends  time.Time
}

// A keyFile is the key of a service account, as Google writes it.
type keyFile struct {
	Type     string `json:"type"`
	Email    string `json:"client_email"`
	KeyID    string `json:"private_key_id"`
	Key      string `json:"private_key"`
	TokenURL string `json:"token_uri"`
}

// keyOf reads the key of a provider's service account.
func (a *Accounts) keyOf(ctx context.Context, tenant string, p *Provider) (f keyFile, print [sha256.Size]byte, err error) {
	if p.Service == nil || p.Service.Key.None() {
		return f, print, missing(p.Name, ServiceAccount, nil, "%s has no service account here; an administrator names its key under auth: providers: %s: service_account in mortise.yaml", p.Name, p.Name)
	}
	text, err := a.read(ctx, tenant, p.Service.Key)
	if err != nil {
		return f, print, err
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil || f.Email == "" || f.Key == "" || !Secure(f.TokenURL) {
		return keyFile{}, print, plugin.Errorf(plugin.CodeUnavailable, "the key of the service account of %s is none: it is a JSON file with client_email, private_key and token_uri", p.Name)
	}
	return f, sha256.Sum256([]byte(text)), a.Keep(f.Key)
}

// mint returns a token of the service account, in the name of the subject where
// there is one (RFC 7523, 2.1).
func (a *Accounts) mint(ctx context.Context, tenant string, p *Provider, scopes []string, subject string) (string, error) {
	f, print, err := a.keyOf(ctx, tenant, p)
	if err != nil {
		return "", err
	}
	scopes = slices.Compact(slices.Sorted(slices.Values(scopes)))
	m := minting{p.Name, subject, strings.Join(scopes, " "), print}
	a.mu.Lock()
	had, found := a.minted[m]
	a.mu.Unlock()
	if found && had.ends.Sub(a.Now()) > early {
		return had.token, a.Know(had.token)
	}
	cfg := jwt.Config{Email: f.Email, PrivateKey: []byte(f.Key), PrivateKeyID: f.KeyID, Subject: subject, Scopes: scopes, TokenURL: f.TokenURL}
	t, err := cfg.TokenSource(a.asking(ctx)).Token()
	if err != nil {
		return "", a.unminted(p, scopes, subject, err)
	}
	if len(t.AccessToken) > maxToken || t.AccessToken == "" {
		return "", plugin.Errorf(plugin.CodeUnavailable, "%s gave no token, or one of more than %d bytes", p.Name, maxToken)
	}
	if err := a.Know(t.AccessToken); err != nil {
		return "", err
	}
	a.remember(m, minted{t.AccessToken, a.ends(t)})
	return t.AccessToken, nil
}

// unminted says why there is no token. The library leaves the code in the body.
func (a *Accounts) unminted(p *Provider, scopes []string, subject string, err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		var body struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(refused.Body, &body) == nil {
			refused.ErrorCode = body.Error
		}
		if code := refused.ErrorCode; code == "unauthorized_client" || code == "invalid_grant" {
			mode, of := ServiceAccount, ""
			if subject != "" {
				mode, of = DomainDelegate, " for "+subject
			}
			return missing(p.Name, mode, scopes, "%s does not let the service account have these scopes%s (%s); an administrator of the domain grants them to its client id", p.Name, of, code)
		}
	}
	return unanswered(p.Name, "for a token of the service account", err)
}

func (a *Accounts) remember(m minting, t minted) {
	if t.ends.IsZero() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.minted) >= maxMinted {
		now := a.Now()
		for other, had := range a.minted {
			if had.ends.Before(now) {
				delete(a.minted, other)
			}
		}
		if len(a.minted) >= maxMinted {
			clear(a.minted)
		}
	}
	a.minted[m] = t
}
