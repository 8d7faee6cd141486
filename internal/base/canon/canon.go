// Package canon gives every JSON value one spelling, so that equal values have
// equal hashes.
//
// The spelling is RFC 8785 with one difference: an integer keeps its digits
// however large it is, where RFC 8785 would round it to a double and let two
// different amounts share a hash.
package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// maxExact is 2^53, the largest magnitude up to which every integer is a double.
const maxExact = "9007199254740992"

// Form returns the canonical spelling of the JSON value raw. Input that is not
// strict I-JSON (a duplicate name, invalid UTF-8, a lone surrogate) is an error.
// raw is not changed.
//
// It fails as package budget does where that would take too much memory.
func Form(raw []byte) (form []byte, err error) {
	weight := len(raw)
	if weight > small {
		weight = budget.Weigh(raw).Canonical()
	}
	err = budget.Do(weight, func() error { form, err = spell(raw); return err })
	return form, err
}

// small is up to which size a value is not weighed.
const small = 16 << 10

func spell(raw []byte) ([]byte, error) {
	if at, found := overflow(raw); found {
		return nil, fmt.Errorf("the number at %s is too large", at)
	}
	value := jsontext.Value(append(make([]byte, 0, len(raw)), raw...))
	if err := value.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return nil, err
	}
	return value, nil
}

// Hash returns "sha256:" and the hexadecimal hash of raw's canonical spelling.
// Nothing at all hashes like null.
func Hash(raw []byte) (string, error) {
	if len(raw) == 0 {
		raw = []byte("null")
	}
	if len(raw) <= small {
		if sum := ""; plain(raw, func(form []byte) { sum = Sum(form) }) {
			return sum, nil
		}
	}
	form, err := Form(raw)
	if err != nil {
		return "", err
	}
	return Sum(form), nil
}

// Sum returns "sha256:" and the hexadecimal hash of data as it stands.
func Sum(data []byte) string {
	const prefix = "sha256:"
	sum := sha256.Sum256(data)
	var text [len(prefix) + 2*sha256.Size]byte
	copy(text[:], prefix)
	hex.Encode(text[len(prefix):], sum[:])
	return string(text[:])
}

// BigNumber returns the JSON pointer of a number in raw whose magnitude is
// above 2^53, however it is spelled: there two programs may read two amounts,
// and one of them is not what was hashed.
func BigNumber(raw []byte) (pointer string, found bool) {
	return findNumber(raw, func(spelled string) bool {
		digits := strings.TrimPrefix(spelled, "-")
		if !strings.ContainsAny(digits, ".eE") {
			return len(digits) > len(maxExact) || len(digits) == len(maxExact) && digits > maxExact
		}
		value, err := strconv.ParseFloat(digits, 64)
		return err != nil || value >= 1<<53
	})
}

// overflow returns the place of a number that is no double, which has no
// canonical spelling. Only one with an exponent, or a long one with a fraction,
// can be that.
func overflow(raw []byte) (pointer string, found bool) {
	if !mayOverflow(raw) {
		return "", false
	}
	return findNumber(raw, func(spelled string) bool {
		if !strings.ContainsAny(spelled, ".eE") {
			return false
		}
		_, err := strconv.ParseFloat(spelled, 64)
		return err != nil
	})
}

// mayOverflow looks for what such a number has: an exponent, or three hundred
// digits. Text may have it too.
func mayOverflow(raw []byte) bool {
	digits := 0
	for _, c := range raw {
		switch {
		case c-'0' <= 9:
			if digits++; digits == 300 {
				return true
			}
		case digits > 0 && c|' ' == 'e':
			return true
		default:
			digits = 0
		}
	}
	return false
}

// findNumber returns the pointer of the first number in raw that is sought.
func findNumber(raw []byte, sought func(spelled string) bool) (pointer string, found bool) {
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return "", false
		}
		if token.Kind() == '0' && sought(token.String()) {
			return string(dec.StackPointer()), true
		}
	}
}

// Check reports what keeps raw from being one strict I-JSON value nested no
// deeper than depth.
func Check(raw []byte, depth int) error {
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		if dec.StackDepth() > depth {
			return fmt.Errorf("nested deeper than %d at %s", depth, dec.StackPointer())
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}
