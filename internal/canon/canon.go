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
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxExact is 2^53, the largest magnitude up to which every integer is a double.
const maxExact = "9007199254740992"

// Form returns the canonical spelling of the JSON value raw. Input that is not
// strict I-JSON (a duplicate name, invalid UTF-8, a lone surrogate) is an error.
// raw is not changed.
func Form(raw []byte) ([]byte, error) {
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

// BigInteger returns the JSON pointer of an integer in raw whose magnitude is
// above 2^53, where a program that reads numbers as doubles would see another
// amount than was hashed.
func BigInteger(raw []byte) (pointer string, found bool) {
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return "", false
		}
		if token.Kind() != '0' {
			continue
		}
		digits := strings.TrimPrefix(token.String(), "-")
		if strings.ContainsAny(digits, ".eE") || len(digits) < len(maxExact) {
			continue
		}
		if len(digits) > len(maxExact) || digits > maxExact {
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
