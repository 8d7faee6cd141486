package host

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A Question that is asked of a caller across two requests leaves its state with the caller. The
// state is encrypted and authenticated with a key derived from ledger.key, which is not in the
// database, so any node of the host can read it and no one else can read, change or make one.

// sealed is what such a text holds.
type sealed struct {
	Expires int64           `json:"e"` // Unix seconds
	State   json.RawMessage `json:"s"`
}

// maxSealed bounds the text that is read back.
const maxSealed = 16 << 10

// Seal returns state as a text that [API.Unseal] reads until it expires. What about names has to
// be the same then: the tenant and the principal are always part of it.
func (a API) Seal(state any, expires time.Time, about ...string) (string, error) {
	raw, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(sealed{expires.Unix(), raw})
	if err != nil {
		return "", err
	}
	key, err := ledgerKey(a.host.parts.Home)
	if err != nil {
		return "", err
	}
	out, err := key.Seal(text, nil, a.sealedFor(about)...)
	return base64.RawURLEncoding.EncodeToString(out), err
}

// Unseal reads what [API.Seal] made. Everything that is not that is the same invalid_input: what
// was changed, what is of another caller, and what has expired.
func (a API) Unseal(text string, state any, now time.Time, about ...string) error {
	refused := plugin.Errorf(plugin.CodeInvalidInput, "the request state is not one that this host gave to this caller for this call, or it has expired: call again without it")
	if len(text) > maxSealed {
		return refused
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return refused
	}
	key, err := ledgerKey(a.host.parts.Home)
	if err != nil {
		return err
	}
	plain, _, err := key.Unseal(raw, a.sealedFor(about)...)
	var s sealed
	if err != nil || json.Unmarshal(plain, &s) != nil || now.Unix() >= s.Expires || json.Unmarshal(s.State, state) != nil {
		return refused
	}
	return nil
}

// sealedFor is what a text is bound to.
func (a API) sealedFor(about []string) []string {
	return append([]string{"request state", a.Tenant(), a.by.Type, a.by.ID}, about...)
}
