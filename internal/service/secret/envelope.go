package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
)

// A key is one of AES-256.
type key [32]byte

func newKey() (k key) {
	rand.Read(k[:]) // never fails: crypto/rand ends the process rather
	return k
}

// String says what k is and nothing of its value.
func (k key) String() string { return "secret key" }

// seal encrypts and binds what comes of it to what it is for.
func (k key) seal(plain []byte, about []byte) []byte {
	gcm := k.gcm()
	nonce := make([]byte, gcm.NonceSize(), gcm.NonceSize()+len(plain)+gcm.Overhead())
	rand.Read(nonce)
	return gcm.Seal(nonce, nonce, plain, about)
}

var errSealed = errors.New("it was encrypted with another key, for something else, or changed since")

// open is the reverse of seal.
func (k key) open(sealed []byte, about []byte) ([]byte, error) {
	gcm := k.gcm()
	if len(sealed) < gcm.NonceSize() {
		return nil, errSealed
	}
	plain, err := gcm.Open(nil, sealed[:gcm.NonceSize()], sealed[gcm.NonceSize():], about)
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}

func (k key) gcm() cipher.AEAD {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		panic(err) // a key has 32 bytes
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return gcm
}

// purpose is what a secret without labels is bound to, and what is encrypted is
// its value. It is written as JSON, so that no two names run into one another.
func purpose(n Name) []byte {
	return bind("mortise secret 1", n.Tenant, n.Owner, n.Scope, n.Subject, n.Name)
}

// labelledPurpose is what a secret with labels is bound to, and what is encrypted
// is a [labelled]. Since the two differ, one does not open as the other: labels
// cannot be removed without the key.
func labelledPurpose(n Name) []byte {
	return bind("mortise secret 2", n.Tenant, n.Owner, n.Scope, n.Subject, n.Name)
}

// A labelled is a value with its labels, as it is encrypted.
type labelled struct {
	Value  string   `json:"value"`
	Labels []string `json:"labels"`
}

// sealValue encrypts a secret together with its labels.
func (k key) sealValue(n Name, value Value) ([]byte, error) {
	if len(value.Labels) == 0 {
		return k.seal([]byte(value.Text), purpose(n)), nil
	}
	labels := slices.Sorted(slices.Values(value.Labels)) // a set, whose spelling approvals are bound to
	raw, err := json.Marshal(labelled{value.Text, slices.Compact(labels)})
	if err != nil {
		return nil, err
	}
	return k.seal(raw, labelledPurpose(n)), nil
}

// openValue is the reverse of sealValue.
func (k key) openValue(n Name, sealed []byte) (Value, error) {
	if plain, err := k.open(sealed, purpose(n)); err == nil {
		return Value{Text: string(plain)}, nil
	}
	raw, err := k.open(sealed, labelledPurpose(n))
	if err != nil {
		return Value{}, err
	}
	var is labelled
	if err := json.Unmarshal(raw, &is); err != nil {
		return Value{}, err
	}
	return Value{Text: is.Value, Labels: is.Labels}, nil
}

// keyPurpose is what an encrypted key is bound to: its number.
func keyPurpose(n int64) []byte { return bind("mortise secret key 1", n) }

func bind(parts ...any) []byte {
	raw, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings and numbers
	}
	return raw
}
