// Package machine tells which program presents a token that an identity provider signed.
//
// Such a token is a JSON Web Token for this host alone: its audience is the address at which
// the host is reached. The keys are those that the provider publishes, and are asked for at a
// bounded rate, whatever tokens come. Who the program is says the configuration, by claims
// that have to be exactly as it has them.
package machine

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of tokens, and of what is asked of a provider.
const (
	// MaxToken is how many bytes a token has at most.
	MaxToken = 8 << 10

	skew      = time.Minute // by which the clocks of host and provider may differ
	life      = time.Hour   // of a token, where nothing else is said
	keysLife  = time.Hour   // after which keys are asked for again, so that those that were withdrawn go
	askTime   = 10 * time.Second
	maxAnswer = 1 << 20 // bytes
	askRate   = 1. / 20 // requests to one provider a second, and
	askBurst  = 4       // so many at once
)

// An Issuer is a provider, and whom its tokens are of.
type Issuer struct {
	Issuer      string
	Algorithms  []string      // RS256 and ES256 where there are none
	MaxLife     time.Duration // an hour where it is 0
	GroupsClaim string
	Groups      map[string][]string // what that claim may say, with the groups that this gives
	Rules       []Rule
}

// A Rule makes the holders of tokens with some claims a principal.
type Rule struct {
	Principal  string
	Claims     map[string]string
	Scopes     []string
	Operations []string
}

// A Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	audience string
	issuers  map[string]*issuer
}

// New returns a verifier of tokens for an audience. A rule with scopes or operations that
// no token can have is refused.
func New(audience string, issuers []Issuer) (*Verifier, error) {
	v := &Verifier{audience: audience, issuers: map[string]*issuer{}}
	for _, one := range issuers {
		one.MaxLife = cmp.Or(one.MaxLife, life)
		if len(one.Algorithms) == 0 {
			one.Algorithms = []string{oidc.RS256, oidc.ES256}
		}
		for _, rule := range one.Rules {
			if err := host.CheckReach(rule.Scopes, rule.Operations); err != nil {
				return nil, fmt.Errorf("machines of %s, %s: %s", one.Issuer, rule.Principal, plugin.AsError(err).Message)
			}
		}
		v.issuers[one.Issuer] = newIssuer(one)
	}
	return v, nil
}

var errInvalid = plugin.Errorf(plugin.CodeUnauthenticated, "the token is not valid")

// Verify returns whose token text is. One error stands for every reason why it is not valid:
// unauthenticated. Where the provider cannot be asked it is unavailable. A token of an issuer
// that is not known costs nothing but reading it.
func (v *Verifier) Verify(ctx context.Context, text string) (host.Machine, error) {
	if len(text) > MaxToken {
		return host.Machine{}, errInvalid
	}
	i := v.issuers[claimedIssuer(text)]
	if i == nil {
		return host.Machine{}, errInvalid
	}
	keys, err := i.keys(ctx)
	if err != nil {
		return host.Machine{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	token, err := oidc.NewVerifier(i.Issuer.Issuer, keys, &oidc.Config{
		ClientID: v.audience, SupportedSigningAlgs: i.Algorithms, SkipExpiryCheck: true, // see inTime
	}).Verify(ctx, text)
	if err != nil {
		var away *url.Error
		if errors.As(err, &away) && !errors.Is(err, errOften) {
			return host.Machine{}, plugin.Errorf(plugin.CodeUnavailable, "the provider of the token cannot be asked: %w", away)
		}
		return host.Machine{}, errInvalid
	}
	var claims map[string]any
	if token.Issuer != i.Issuer.Issuer || token.Subject == "" || !slices.Equal(token.Audience, []string{v.audience}) || token.Claims(&claims) != nil || !i.inTime(token, claims, time.Now()) {
		return host.Machine{}, errInvalid
	}
	rule := i.rule(claims)
	if rule == nil {
		return host.Machine{}, errInvalid
	}
	return host.Machine{
		Issuer: token.Issuer, Subject: token.Subject, Principal: rule.Principal, Scopes: rule.Scopes, Operations: rule.Operations,
		Groups: host.MappedGroups(claims[i.GroupsClaim], i.Groups), Expires: token.Expiry,
	}, nil
}

// claimedIssuer is the issuer that an unverified token names, "" if it is none.
func claimedIssuer(text string) string {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// inTime reports whether a token counts now. It has to say when it was made and when it
// ends, and may not last for longer than the configuration says.
func (i *issuer) inTime(token *oidc.IDToken, claims map[string]any, now time.Time) bool {
	from, _ := claims["nbf"].(float64)
	_, says := claims["nbf"]
	return token.IssuedAt.Unix() > 0 && token.Expiry.After(token.IssuedAt) &&
		token.Expiry.Sub(token.IssuedAt) <= i.MaxLife && now.Before(token.Expiry.Add(skew)) && !token.IssuedAt.After(now.Add(skew)) &&
		(!says || from > 0 && from <= float64(now.Add(skew).Unix()))
}

// rule returns the one rule that fits; nil if none does, or two.
func (i *issuer) rule(claims map[string]any) (found *Rule) {
	for n := range i.Rules {
		fits := len(i.Rules[n].Claims) > 0
		for name, want := range i.Rules[n].Claims {
			text, is := claims[name].(string)
			fits = fits && is && text == want
		}
		switch {
		case fits && found != nil:
			return nil
		case fits:
			found = &i.Rules[n]
		}
	}
	return found
}

// issuer is a provider with the keys that it published.
type issuer struct {
	Issuer
	client *http.Client

	mu      sync.Mutex
	address string // of its keys, once it was discovered
	set     oidc.KeySet
	since   time.Time // of set
}

func newIssuer(of Issuer) *issuer {
	return &issuer{Issuer: of, client: &http.Client{
		Transport: rationed{ratelimit.New[string](askRate, askBurst, 1)}, Timeout: askTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// keys returns what signatures are verified with. It asks the provider once where its keys are.
func (i *issuer) keys(ctx context.Context) (oidc.KeySet, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.set != nil && time.Since(i.since) < keysLife {
		return i.set, nil
	}
	// Keys are fetched later with the same client, and not with this request's context.
	outlasting := oidc.ClientContext(context.WithoutCancel(ctx), i.client)
	if i.address == "" {
		at, err := oidc.NewProvider(outlasting, i.Issuer.Issuer)
		if err != nil {
			return nil, plugin.Errorf(plugin.CodeUnavailable, "the issuer %s cannot be discovered: %w", i.Issuer.Issuer, err)
		}
		var says struct {
			Keys string `json:"jwks_uri"`
		}
		if err := at.Claims(&says); err != nil || says.Keys == "" {
			return nil, plugin.Errorf(plugin.CodeUnavailable, "the issuer %s does not say where its keys are", i.Issuer.Issuer)
		}
		if from, err := url.Parse(i.Issuer.Issuer); err != nil || from.Scheme == "https" && !strings.HasPrefix(says.Keys, "https://") {
			return nil, plugin.Errorf(plugin.CodeUnavailable, "the issuer %s publishes its keys without encryption", i.Issuer.Issuer)
		}
		i.address = says.Keys
	}
	i.set, i.since = oidc.NewRemoteKeySet(outlasting, i.address), time.Now()
	return i.set, nil
}

// errOften says that a provider was asked as often as it is.
var errOften = errors.New("the provider was asked a moment ago")

// rationed asks a provider at a bounded rate, and reads no more of an answer than maxAnswer.
type rationed struct{ rate *ratelimit.Limiter[string] }

// RoundTrip implements [http.RoundTripper].
func (t rationed) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.rate.Take("", 1, time.Now()) > 0 {
		return nil, errOften
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}
