package host

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// TokensPlugin is what stands for API tokens where policy is asked who may configure
// those of others.
const TokensPlugin = "mortise.tokens"

// What one token may have.
const (
	maxTokenName  = 100 // characters
	maxOperations = 64
	maxOperation  = 200 // bytes of one
	maxTokens     = 10_000

	// TokenLife is how long a token is in force where nothing else is said.
	TokenLife = 90 * 24 * time.Hour
)

// A Token is an API token as it may be shown: never with its secret.
type Token struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Principal  string    `json:"principal"` // as the configuration names them
	Scopes     []string  `json:"scopes"`
	Operations []string  `json:"operations"` // all if empty
	By         string    `json:"by"`         // who created it
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	UsedAt     time.Time `json:"used_at,omitzero"` // to the minute
	UsedFrom   string    `json:"used_from,omitempty"`
	Shared     bool      `json:"shared"` // who created it has seen the secret; see [Tokens.Rotate]
}

// A NewToken says what a token is to be.
type NewToken struct {
	Name       string
	For        string // the principal, as the configuration names them; who asks if empty
	Scopes     []string
	Operations []string
	Life       time.Duration // [TokenLife] if 0, without end if negative
}

// Tokens are the API tokens of the host's tenant, as one principal may see and change
// them. What is refused is on the record.
type Tokens struct {
	g      *Guard
	by     plugin.Principal
	asker  func() string
	caller *Caller
}

// List returns the tokens of the principal, or all where policy lets them configure
// mortise.tokens, by id.
func (t Tokens) List(ctx context.Context) ([]Token, error) {
	rows, err := t.g.Store.Tokens(ctx, t.g.Tenant)
	if err != nil {
		return nil, err
	}
	all := t.g.right(TokensPlugin, t.by).Verdict == plugin.Allow
	listed := []Token{}
	for i := range rows {
		if all || t.own(&rows[i]) {
			listed = append(listed, tokenOf(&rows[i]))
		}
	}
	return listed, nil
}

// Create makes a token, and returns it with its secret, which is shown this once. It takes
// the right to configure mortise.tokens and, over the API, a token that may let others in:
// see [Guard.letsIn]. No token is in force for longer than the one that made it. One for the
// administrator is made by the administrator. Errors: policy_denied, invalid_input, limit_exceeded,
// not_found; unauthenticated where the token that asks was revoked or rotated meanwhile.
func (t Tokens) Create(ctx context.Context, n NewToken) (Token, string, error) {
	if err := t.g.authorise(ctx, t.by, t.g.part(TokensPlugin), use{plugin.EntryTokenRefused, n.Name, "create", "create tokens"}); err != nil {
		return Token{}, "", err
	}
	if err := t.g.letsIn(ctx, t.caller, use{plugin.EntryTokenRefused, n.Name, "create", ""}); err != nil {
		return Token{}, "", err
	}
	if err := t.g.recent(ctx, t.caller, use{plugin.EntryTokenRefused, n.Name, "create", ""}); err != nil {
		return Token{}, "", err
	}
	who := t.by
	if n.For != "" {
		who = principal.Parse(n.For)
	}
	if len(n.Scopes) == 0 {
		n.Scopes = []string{ScopeRead}
	}
	end, err := t.end(ctx)
	if err != nil {
		return Token{}, "", err
	}
	if !t.g.Known(t.g.Tenant, who) {
		return Token{}, "", plugin.Errorf(plugin.CodeNotFound, "there is no principal %.255q; mortise.yaml names %s", n.For, strings.Join(t.g.now().names, ", "))
	}
	if t.g.administers(who) && !t.g.administers(t.by) {
		why := plugin.Errorf(plugin.CodePolicyDenied, "%s may not create a token for the administrator", principal.Name(t.by))
		return Token{}, "", t.g.refuse(ctx, t.by, use{plugin.EntryTokenRefused, n.Name, "create", ""}, why, plugin.Decision{})
	}
	if who.Type == "agent" {
		return Token{}, "", plugin.Errorf(plugin.CodeInvalidInput, "%s is an agent, which acts through this host alone; create a token for a user or a service", n.For)
	}
	row := tokenRow{
		Tenant: t.g.Tenant, ID: randomText(10), Name: n.Name, PrincipalType: who.Type, PrincipalID: who.ID, By: principal.Name(t.by), Asker: t.asker(),
		Scopes: ordered(n.Scopes), Operations: ordered(n.Operations), CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	if err := checkToken(&row, n.Life); err != nil {
		return Token{}, "", err
	}
	if !end.IsZero() && (row.ExpiresAt.IsZero() || row.ExpiresAt.After(end)) {
		if n.Life != 0 {
			return Token{}, "", t.longer(ctx)
		}
		row.ExpiresAt = end
	}
	secret := newSecret(&row)
	err = t.g.Store.Write(ctx, func(tx Tx) error {
		if err := t.inForce(ctx, tx); err != nil {
			return err
		}
		if all, err := tx.Tokens(ctx, row.Tenant); err != nil || len(all) >= maxTokens {
			return orElse(err, plugin.Errorf(plugin.CodeLimitExceeded, "there are %d tokens, which is the most that are kept", maxTokens))
		} else if err := t.g.mostTokens(all, &row); err != nil {
			return err
		}
		if err := tx.PutToken(row); err != nil {
			return err
		}
		return t.g.Note(tx, t.by, plugin.EntryTokenCreated, row.ID, tokenEvidence(&row))
	})
	return tokenOf(&row), secret, err
}

// mostTokens refuses a principal more tokens in force than they may have.
func (g *Guard) mostTokens(all []tokenRow, row *tokenRow) error {
	n := 0
	for i := range all {
		if of := &all[i]; of.PrincipalType == row.PrincipalType && of.PrincipalID == row.PrincipalID && of.RevokedAt.IsZero() && (of.ExpiresAt.IsZero() || row.CreatedAt.Before(of.ExpiresAt)) {
			n++
		}
	}
	return ownedTokens.Most(n, g.MostTokens, "limits.principal_tokens")
}

// end returns until when the token that asks is in force: the zero time if there is none, or
// no end.
func (t Tokens) end(ctx context.Context) (end time.Time, err error) {
	c := t.caller
	if c == nil {
		return end, nil
	}
	if c.Token == "" {
		return c.Expires, nil
	}
	row, err := t.g.Store.Token(ctx, c.Token)
	if err != nil || row == nil {
		return end, orElse(err, ErrToken)
	}
	return row.ExpiresAt, nil
}

// longer refuses to make a token that outlives the one that asks.
func (t Tokens) longer(ctx context.Context) error {
	why := plugin.Errorf(plugin.CodePolicyDenied, "token %s cannot make one that is in force for longer than itself", t.caller.proof())
	return t.g.refuse(ctx, t.by, use{plugin.EntryTokenRefused, t.caller.proof(), "create", ""}, why, plugin.Decision{})
}

// inForce refuses a caller whose token was revoked or rotated since it was presented: a
// secret that leaked makes no other before its end is noticed.
func (t Tokens) inForce(ctx context.Context, tx Tx) error {
	if t.caller == nil || t.caller.Token == "" {
		return nil
	}
	row, err := tx.Token(ctx, t.caller.Token)
	if err != nil {
		return err
	}
	if row == nil || row.Hash != t.caller.hash || !row.RevokedAt.IsZero() {
		return ErrToken
	}
	return nil
}

// Rotate gives the token that authenticated the caller another secret, and returns it. From
// then on who created the token has not seen its secret, and the caller counts as a person
// of their own where an approval takes a second one. A caller without a token has nothing
// to rotate: invalid_input. A secret that was rotated or revoked since it was presented rotates
// nothing: unauthenticated.
func (t Tokens) Rotate(ctx context.Context) (Token, string, error) {
	if t.caller == nil || t.caller.Token == "" {
		return Token{}, "", plugin.Errorf(plugin.CodeInvalidInput, "a token is rotated by who presents it: mortise tokens rotate --server URL")
	}
	var row tokenRow
	var secret string
	err := t.change(ctx, t.caller.Token, "rotate", plugin.EntryTokenRotated, func(r *tokenRow) error {
		if r.Hash != t.caller.hash || !r.RevokedAt.IsZero() {
			return ErrToken // another rotated or revoked it since this request was authenticated
		}
		r.Asker = userAsker(holderOf(r))
		secret = newSecret(r)
		row = *r
		return nil
	})
	return tokenOf(&row), secret, err
}

// Revoke ends a token at once: its principal's own, or any with the right to configure
// mortise.tokens. A token that was revoked stays so, and stays listed.
func (t Tokens) Revoke(ctx context.Context, id string) (Token, error) {
	var row tokenRow
	err := t.change(ctx, id, "revoke", plugin.EntryTokenRevoked, func(r *tokenRow) error {
		if r.RevokedAt.IsZero() {
			r.RevokedAt = time.Now().UTC().Truncate(time.Microsecond)
		}
		row = *r
		return nil
	})
	return tokenOf(&row), err
}

// change changes a token that is theirs, or that they may configure, with an entry.
func (t Tokens) change(ctx context.Context, id, action string, kind plugin.EntryKind, do func(*tokenRow) error) error {
	missing := plugin.Errorf(plugin.CodeNotFound, "there is no token %.64s; 'mortise tokens list' shows those there are", id)
	row, err := t.g.Store.Token(ctx, id)
	if err != nil {
		return err
	}
	if row != nil && row.Tenant != t.g.Tenant {
		row = nil
	}
	if d := t.g.right(TokensPlugin, t.by); d.Verdict != plugin.Allow && (row == nil || !t.own(row)) {
		return t.g.refuse(ctx, t.by, use{kind: plugin.EntryTokenRefused, subject: id, action: action}, missing, d)
	}
	if row == nil {
		return missing
	}
	if err := t.g.recent(ctx, t.caller, use{kind: plugin.EntryTokenRefused, subject: id, action: action}); err != nil {
		return err
	}
	return t.g.Store.Write(ctx, func(tx Tx) error {
		now, err := tx.Token(ctx, id)
		if err != nil || now == nil {
			return orElse(err, missing)
		}
		if err := do(now); err != nil {
			return err
		}
		if err := tx.PutToken(*now); err != nil {
			return err
		}
		return t.g.Note(tx, t.by, kind, id, tokenEvidence(now))
	})
}

func (t Tokens) own(row *tokenRow) bool {
	return principal.Name(holderOf(row)) == principal.Name(t.by)
}

func tokenOf(row *tokenRow) Token {
	who := holderOf(row)
	return Token{
		ID: row.ID, Name: row.Name, Principal: principal.Name(who), Scopes: append([]string{}, row.Scopes...), Operations: append([]string{}, row.Operations...),
		By: row.By, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt, UsedAt: row.UsedAt, UsedFrom: row.UsedFrom,
		Shared: row.Asker != userAsker(who),
	}
}

// tokenEvidence is what the ledger keeps of a token: not what its secret could be guessed by.
func tokenEvidence(row *tokenRow) map[string]any {
	v := tokenOf(row)
	body := map[string]any{"name": v.Name, "principal": v.Principal, "scopes": v.Scopes, "operations": v.Operations, "by": v.By, "asker": row.Asker}
	if !v.ExpiresAt.IsZero() {
		body["expires_at"] = v.ExpiresAt
	}
	return body
}

// userAsker is the identity of a principal who presents a secret that they alone have seen.
func userAsker(who plugin.Principal) string { return approval.Principal(who.Member()) }

func ordered(texts []string) []string {
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(texts)))...)
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// operationPattern is plugin/operation or plugin/*.
var operationPattern = pattern.New(`^[A-Za-z0-9_.-]+/([A-Za-z0-9_.-]+|\*)$`)

// CheckScopes refuses what is no scope of a token.
func CheckScopes(scopes []string) error {
	for _, scope := range scopes {
		if !slices.Contains(Scopes, scope) {
			return plugin.Errorf(plugin.CodeInvalidInput, "%.64q is no scope; there are %s", scope, strings.Join(Scopes, ", "))
		}
	}
	return nil
}

// CheckReach refuses scopes and operations that no token can have.
func CheckReach(scopes, operations []string) error {
	if err := CheckScopes(scopes); err != nil {
		return err
	}
	if len(operations) > maxOperations {
		return plugin.Errorf(plugin.CodeLimitExceeded, "%d operations; a token has at most %d", len(operations), maxOperations)
	}
	for _, op := range operations {
		if len(op) > maxOperation || !operationPattern.MatchString(op) {
			return plugin.Errorf(plugin.CodeInvalidInput, "%.200q is no operation; write plugin/operation or plugin/*", op)
		}
	}
	return nil
}

// checkToken refuses what no token can be, and completes the row.
func checkToken(row *tokenRow, life time.Duration) error {
	if n := utf8.RuneCountInString(row.Name); n == 0 || n > maxTokenName || !utf8.ValidString(row.Name) || strings.ContainsFunc(row.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return plugin.Errorf(plugin.CodeInvalidInput, "the name of a token is 1 to %d printable characters that say what it is for", maxTokenName)
	}
	if len(row.Scopes) == 0 {
		row.Scopes = []string{ScopeRead}
	}
	if err := CheckReach(row.Scopes, row.Operations); err != nil {
		return err
	}
	if life == 0 {
		life = TokenLife
	}
	if life > 0 {
		row.ExpiresAt = row.CreatedAt.Add(life)
	}
	return nil
}

// TokenPrefix begins every token of a host.
const TokenPrefix = secret.TokenPrefix

// TokenPattern is what every token matches, for scanners of secrets.
const TokenPattern = secret.TokenPattern

var tokenForm = pattern.New(`^` + TokenPattern + `$`)

// newSecret makes the secret of a token and returns the token as it is presented: its kind
// and id, the secret, and a checksum that tells a typing error from a guess.
func newSecret(row *tokenRow) string {
	kind := "u"
	if row.PrincipalType == "service" {
		kind = "s"
	}
	if len(row.Scopes) == 1 && row.Scopes[0] == ScopeDecide {
		kind = "h"
	}
	text := TokenPrefix + kind + row.ID + "_" + randomText(32)
	text += "_" + checksum(text)
	row.Hash = hashToken(text)
	return text
}

func hashToken(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func checksum(text string) string {
	digits := big.NewInt(int64(crc32.ChecksumIEEE([]byte(text)))).Text(62)
	return strings.Repeat("0", 6-len(digits)) + digits
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// randomText returns n characters of the alphabet.
func randomText(n int) string {
	var b strings.Builder
	for range n {
		digit, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			panic(fmt.Sprintf("the system has no random numbers: %v", err))
		}
		b.WriteByte(alphabet[digit.Int64()])
	}
	return b.String()
}

// readToken returns the id of a token that is well formed.
func readToken(text string) (id string, ok bool) {
	if !tokenForm.MatchString(text) {
		return "", false
	}
	body, sum := text[:len(text)-7], text[len(text)-6:]
	return text[5:15], subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(sum)) == 1
}

// askerOf returns the authenticated identity behind a token: its principal, and with it who
// else has seen the secret.
func askerOf(row *tokenRow) string { return approval.Entrusted(userAsker(holderOf(row)), row.Asker) }

// holderOf returns the principal that a token stands for, without scopes.
func holderOf(row *tokenRow) plugin.Principal {
	return plugin.Principal{Type: row.PrincipalType, ID: row.PrincipalID}
}
