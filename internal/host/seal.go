package host

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// maxSealed is how many characters may be opened.
const maxSealed = 64 << 10

// A sealedValue is what a client keeps for the host: it can neither read nor change it.
type sealedValue struct {
	Value []byte `json:"value"`
	Until int64  `json:"until"` // in milliseconds
}

// A Seal encrypts values for a place, and reads them there alone.
type Seal interface {
	Seal(plain []byte, place ...string) ([]byte, error)
	Unseal(sealed []byte, place ...string) ([]byte, error)
}

// Seal encrypts a value that a client is to keep and to bring back: for a time, for the same
// principal, and for the place that is named. Every node of the host can open it.
func (a API) Seal(value []byte, life time.Duration, place ...string) (string, error) {
	raw, err := json.Marshal(sealedValue{value, a.host.parts.Guard.Store.Now().Add(life).UnixMilli()})
	if err != nil {
		return "", err
	}
	sealed, err := a.host.parts.Seal.Seal(raw, a.sealPlace(place)...)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Unseal returns a value that was sealed: invalid_input where it was changed, is for another
// principal or place, or its time is over.
func (a API) Unseal(text string, place ...string) ([]byte, error) {
	refused := plugin.Errorf(plugin.CodeInvalidInput, "the state was not given out by this host for this call, was changed, or is too old")
	if len(text) > maxSealed {
		return nil, refused
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, refused
	}
	raw, err := a.host.parts.Seal.Unseal(sealed, a.sealPlace(place)...)
	var v sealedValue
	if err != nil || json.Unmarshal(raw, &v) != nil || a.host.parts.Guard.Store.Now().UnixMilli() > v.Until {
		return nil, refused
	}
	return v.Value, nil
}

func (a API) sealPlace(place []string) []string {
	return append([]string{"client state", a.Tenant(), principal.Name(a.by)}, place...)
}
