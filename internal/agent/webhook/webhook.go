// Package webhook signs what the host sends elsewhere and verifies what others
// send to it.
//
// A delivery counts only if it is whole: its signature is over the bytes as they
// came, its id and its time are covered by that signature wherever the sender's
// scheme can do so, and the time is at most [Tolerance] from now. Whether a
// delivery was seen before is the caller's to find out, by [Delivery.ID] and
// [Delivery.Hash].
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// Tolerance is how far a sender's clock may be from ours, and how old a delivery
// may be.
const Tolerance = 5 * time.Minute

// MaxBody is how many bytes a delivery may have.
const MaxBody = 1 << 20

// A Delivery is something that a known sender sent.
type Delivery struct {
	ID   string    // as the sender tells its deliveries apart
	At   time.Time // when it was sent; zero where its scheme does not say
	Body []byte
}

// Hash identifies the body: the same one under another id is the same delivery.
func (d *Delivery) Hash() string {
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:])
}

// A Scheme is how a sender proves who it is.
type Scheme string

// The schemes there are.
const (
	Standard Scheme = "standard" // Standard Webhooks 1.0: webhook-id, webhook-timestamp, webhook-signature
	Slack    Scheme = "slack"    // X-Slack-Request-Timestamp, X-Slack-Signature
	GitHub   Scheme = "github"   // X-GitHub-Delivery, X-Hub-Signature-256
	Telegram Scheme = "telegram" // X-Telegram-Bot-Api-Secret-Token
)

// Schemes are all of them, by name.
func Schemes() []Scheme { return []Scheme{GitHub, Slack, Standard, Telegram} }

// Known reports whether there is such a scheme.
func (s Scheme) Known() bool { return slices.Contains(Schemes(), s) }

// Verify returns the delivery that a request brought, if one of the secrets
// proves it. Two secrets are in use while one replaces the other. The error says
// nothing that would help to forge one; its code is unauthenticated. Whatever is
// wrong, the whole body was hashed: the time that a refusal takes says nothing of why.
func (s Scheme) Verify(header http.Header, body []byte, secrets []string, now time.Time) (*Delivery, error) {
	var w work
	d, err := s.verify(&w, header, body, secrets, now)
	if plugin.CodeOf(err) == plugin.CodeUnauthenticated && w.bytes < len(body) {
		Refused(body)
	}
	return d, err
}

// Refused takes as long as [Scheme.Verify] does to refuse a body, for one who has
// no secret to verify it with.
func Refused(body []byte) { new(work).mac(nil, string(body)) }

func (s Scheme) verify(w *work, header http.Header, body []byte, secrets []string, now time.Time) (*Delivery, error) {
	if len(body) > MaxBody {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the delivery has %d bytes; at most %d are accepted", len(body), MaxBody)
	}
	verify, found := verifiers[s]
	if !found {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "there is no signature scheme %q; the schemes are %v", s, Schemes())
	}
	one, err := once(header, needed[s])
	if err != nil {
		return nil, err
	}
	for _, secret := range secrets {
		if secret == "" {
			continue // what proves nothing
		}
		if d, ok := verify(w, one, body, secret); ok {
			if d.ID == "" || len(d.ID) > 255 {
				return nil, forged("it has no usable id")
			}
			if late := now.Sub(d.At); !d.At.IsZero() && (late > Tolerance || late < -Tolerance) {
				return nil, forged("it was signed more than %s from now", Tolerance)
			}
			d.Body = body
			return d, nil
		}
	}
	return nil, forged("its signature is not one of %s", s)
}

// once returns the headers that a scheme needs. One that is missing, or there
// twice, proves nothing; nor does one beside which there is another that servers
// between the sender and the host may take for it, as X_Signature for X-Signature.
func once(header http.Header, names []string) (map[string]string, error) {
	one := map[string]string{}
	for other := range header {
		folded := http.CanonicalHeaderKey(strings.NewReplacer("_", "-", ".", "-").Replace(other))
		if folded != http.CanonicalHeaderKey(other) && slices.Contains(names, folded) {
			return nil, forged("it has a header %.60q, which reads as %s", other, folded)
		}
	}
	for _, name := range names {
		values := header.Values(name)
		if len(values) != 1 || values[0] == "" {
			return nil, forged("it has %d headers %s; one is needed", len(values), name)
		}
		one[name] = values[0]
	}
	return one, nil
}

func forged(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeUnauthenticated, "the delivery is not accepted: "+format, args...)
}

// needed are the headers of each scheme.
var needed = map[Scheme][]string{
	Standard: {"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"},
	Slack:    {"X-Slack-Request-Timestamp", "X-Slack-Signature"},
	GitHub:   {"X-Github-Delivery", "X-Hub-Signature-256"},
	Telegram: {"X-Telegram-Bot-Api-Secret-Token"},
}

var verifiers = map[Scheme]func(w *work, header map[string]string, body []byte, secret string) (*Delivery, bool){
	Standard: standard, Slack: slack, GitHub: github, Telegram: telegram,
}

// A work is what verifying one delivery hashed.
type work struct{ bytes int }

// mac returns the HMAC-SHA256 of the parts one after another.
func (w *work) mac(key []byte, parts ...string) []byte {
	m := hmac.New(sha256.New, key)
	for _, part := range parts {
		m.Write([]byte(part))
		w.bytes += len(part)
	}
	return m.Sum(nil)
}

// signedBy reports whether text is prefix and the hexadecimal form of sum.
func signedBy(text, prefix string, sum []byte) bool {
	digits, ok := strings.CutPrefix(text, prefix)
	return ok && hmac.Equal([]byte(digits), []byte(hex.EncodeToString(sum)))
}
