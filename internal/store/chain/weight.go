package chain

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
)

// A Weight stands for a set of rows, or for one: the sum of what the key makes of
// their digests. To add one and to take one away costs the same, however many
// there are, and in whatever order several chains do it.
type Weight [4]uint64

// Weigh returns what stands for one row of a table. Without the key no digest can be
// found whose weight makes up for that of another.
func (k *Key) Weigh(table, digest string) Weight {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(liveDomain + table + "\n" + digest))
	return weightOf(mac.Sum(nil))
}

// Plus returns the sum of both.
func (w Weight) Plus(other Weight) (sum Weight) {
	var carry uint64
	for i := range sum {
		sum[i], carry = bits.Add64(w[i], other[i], carry)
	}
	return sum
}

// Minus returns w without other.
func (w Weight) Minus(other Weight) (rest Weight) {
	var borrow uint64
	for i := range rest {
		rest[i], borrow = bits.Sub64(w[i], other[i], borrow)
	}
	return rest
}

func weightOf(raw []byte) (w Weight) {
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return w
}

// HideWeight returns a weight as a head has it: under a pad of its own, so that
// what single rows weigh cannot be learnt from one head and the next.
func (k *Key) HideWeight(table string, w Weight) string {
	nonce := make([]byte, 16)
	rand.Read(nonce) // never fails: crypto/rand ends the process rather
	hidden := w.Plus(k.pad(table, nonce))
	for _, part := range hidden {
		nonce = binary.LittleEndian.AppendUint64(nonce, part)
	}
	return hex.EncodeToString(nonce)
}

// ShowWeight returns the weight that a head has.
func (k *Key) ShowWeight(table, text string) (w Weight, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 16+32 {
		return w, fmt.Errorf("what a head says of the %s that have not ended cannot be read", table)
	}
	return weightOf(raw[16:]).Minus(k.pad(table, raw[:16])), nil
}

func (k *Key) pad(table string, nonce []byte) Weight {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(padDomain + table + "\n"))
	mac.Write(nonce)
	return weightOf(mac.Sum(nil))
}
