package chain

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// sealedMark begins what is encrypted in a store, in the place of what it is.
const sealedMark = "mortise sealed 1\n"

// sealDomain tells the key that seals from the one that signs.
const sealDomain = "mortise sealing key 1\n"

// A sealed value is what is encrypted: the data, and what in it is a secret.
type sealed struct {
	Data    []byte   `json:"data"`
	Secrets []string `json:"secrets"`
}

// Sealed reports whether data is encrypted by [Key.Seal].
func Sealed(data []byte) bool { return bytes.HasPrefix(data, []byte(sealedMark)) }

// Seal encrypts data that has secrets in it and must stay what it is, bound to
// the place where it is kept.
func (k *Key) Seal(data []byte, secrets []string, place ...string) ([]byte, error) {
	plain, err := json.Marshal(sealed{data, secrets})
	if err != nil {
		return nil, err
	}
	about, err := json.Marshal(place)
	if err != nil {
		return nil, err
	}
	gcm, err := k.gcm()
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	rand.Read(nonce) // never fails: crypto/rand ends the process rather
	return gcm.Seal(append([]byte(sealedMark), nonce...), nonce, plain, about), nil
}

// Unseal is the reverse of Seal.
func (k *Key) Unseal(data []byte, place ...string) (plain []byte, secrets []string, err error) {
	about, err := json.Marshal(place)
	if err != nil {
		return nil, nil, err
	}
	gcm, err := k.gcm()
	if err != nil {
		return nil, nil, err
	}
	raw, is := bytes.CutPrefix(data, []byte(sealedMark))
	if !is || len(raw) < gcm.NonceSize() {
		return nil, nil, errSeal
	}
	opened, err := gcm.Open(nil, raw[:gcm.NonceSize()], raw[gcm.NonceSize():], about)
	if err != nil {
		return nil, nil, errSeal
	}
	var s sealed
	if err := json.Unmarshal(opened, &s); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errSeal, err)
	}
	return s.Data, s.Secrets, nil
}

var errSeal = errors.New("what is encrypted here was changed, or is another ledger's")

func (k *Key) gcm() (cipher.AEAD, error) {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(sealDomain))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
