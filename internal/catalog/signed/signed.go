// Package signed says who a package file is from: by minisign signatures, and the
// publishers that a host trusts.
//
// A signature stands beside the file that it is of, as FILE.minisig, in the format of
// minisign (https://jedisct1.github.io/minisign/): Ed25519 over the BLAKE2b hash of the
// file. That tool and this package read and verify what the other makes.
//
//	key, _ := signed.Generate()
//	signature, _ := key.Sign(file, "acme.letters 1.0.0")
//	publisher, err := trust.Publisher("acme.letters", proof)
package signed

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/mortise-dev/mortise/plugin"
)

// Suffix ends the name of the file that a signature is in.
const Suffix = ".minisig"

// MaxSignature bounds a file with a signature or a key.
const MaxSignature = 8 << 10

// The two-letter names of minisign.
const (
	plainAlgorithm  = "Ed" // of keys, and of signatures over a whole file
	hashedAlgorithm = "ED" // of signatures over a hash
	noPassword      = "\x00\x00"
	sums            = "B2"
)

// A KeyID tells keys apart. It is no secret and proves nothing.
type KeyID [8]byte

// String is the id as minisign prints it.
func (id KeyID) String() string { return fmt.Sprintf("%016X", binary.LittleEndian.Uint64(id[:])) }

// A PublicKey is what a publisher's signatures are verified with.
type PublicKey struct {
	ID  KeyID
	key ed25519.PublicKey
}

// ParsePublicKey reads a key: the line of 56 characters that minisign prints, or the file
// of two lines that has it. Anything else is invalid_input.
func ParsePublicKey(text string) (PublicKey, error) {
	raw, err := line(text)
	if err != nil || len(raw) != 2+8+ed25519.PublicKeySize || string(raw[:2]) != plainAlgorithm {
		return PublicKey{}, refused("this is no public key of minisign: one is 56 characters that begin with RW")
	}
	return PublicKey{KeyID(raw[2:10]), ed25519.PublicKey(raw[10:])}, nil
}

// String is the key as one line.
func (k PublicKey) String() string {
	return base64.StdEncoding.EncodeToString(bytes.Join([][]byte{[]byte(plainAlgorithm), k.ID[:], k.key}, nil))
}

// File is the key as a file for others.
func (k PublicKey) File() []byte {
	return fmt.Appendf(nil, "untrusted comment: minisign public key %s\n%s\n", k.ID, k)
}

// A SecretKey is what a publisher signs with.
type SecretKey struct {
	PublicKey
	secret ed25519.PrivateKey
}

// Generate makes a key.
func Generate() (SecretKey, error) {
	public, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return SecretKey{}, err
	}
	k := SecretKey{PublicKey{key: public}, secret}
	_, err = rand.Read(k.ID[:])
	return k, err
}

// secretSize is that of a secret key in bytes: three names, what a password was stretched with,
// the id, the key and a sum.
const secretSize = 3*2 + 32 + 8 + 8 + 8 + ed25519.PrivateKeySize + 32

// ParseSecretKey reads a secret key as minisign writes it with -W: one without a password.
func ParseSecretKey(text []byte) (SecretKey, error) {
	raw, err := line(string(text))
	switch {
	case err != nil || len(raw) != secretSize || string(raw[:2]) != plainAlgorithm || string(raw[4:6]) != sums:
		return SecretKey{}, refused("this is no secret key of minisign")
	case string(raw[2:4]) != noPassword:
		return SecretKey{}, refused("the secret key has a password: sign with minisign -S, or use a key that was made with `mortise plugins keygen` or minisign -G -W")
	}
	rest := raw[secretSize-8-ed25519.PrivateKeySize-32:]
	k := SecretKey{PublicKey{ID: KeyID(rest[:8])}, ed25519.PrivateKey(rest[8 : 8+ed25519.PrivateKeySize])}
	// minisign leaves the sum out where there is no password, but a key has its public half in it.
	if !k.secret.Equal(ed25519.NewKeyFromSeed(k.secret.Seed())) {
		return SecretKey{}, refused("the secret key is damaged")
	}
	k.key = k.secret.Public().(ed25519.PublicKey)
	return k, nil
}

// sum is what minisign would recognise a damaged file by.
func (k SecretKey) sum() []byte {
	sum := blake2b.Sum256(bytes.Join([][]byte{[]byte(plainAlgorithm), k.ID[:], k.secret}, nil))
	return sum[:]
}

// File is the key as a file that its owner alone may read.
func (k SecretKey) File() []byte {
	raw := bytes.Join([][]byte{[]byte(plainAlgorithm + noPassword + sums), make([]byte, 32+8+8), k.ID[:], k.secret, k.sum()}, nil)
	return fmt.Appendf(nil, "untrusted comment: minisign secret key %s, without a password\n%s\n", k.ID, base64.StdEncoding.EncodeToString(raw))
}

// Sign returns the signature of what is read, with a comment that is signed too.
func (k SecretKey) Sign(content io.Reader, comment string) ([]byte, error) {
	if strings.ContainsAny(comment, "\r\n") {
		return nil, refused("the comment of a signature is one line")
	}
	sum, err := Sum(content)
	if err != nil {
		return nil, err
	}
	signature := ed25519.Sign(k.secret, sum[:])
	whole := ed25519.Sign(k.secret, append(bytes.Clone(signature), comment...))
	raw := bytes.Join([][]byte{[]byte(hashedAlgorithm), k.ID[:], signature}, nil)
	return fmt.Appendf(nil, "untrusted comment: signature of minisign key %s\n%s\ntrusted comment: %s\n%s\n",
		k.ID, base64.StdEncoding.EncodeToString(raw), comment, base64.StdEncoding.EncodeToString(whole)), nil
}

// Sum is the hash that a signature is of.
func Sum(content io.Reader) (sum [blake2b.Size]byte, err error) {
	hash, err := blake2b.New512(nil)
	if err != nil {
		return sum, err
	}
	if _, err := io.Copy(hash, content); err != nil {
		return sum, err
	}
	return [blake2b.Size]byte(hash.Sum(nil)), nil
}

// A Signature is one that was read, and proves nothing before [Signature.Verify].
type Signature struct {
	Key       KeyID
	Comment   string
	signature []byte
	whole     []byte
}

const trusted = "trusted comment: "

// ParseSignature reads a signature; anything else, and the older form over a whole file,
// is invalid_input.
func ParseSignature(text []byte) (Signature, error) {
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
	if len(text) > MaxSignature || len(lines) != 4 || !strings.HasPrefix(lines[2], trusted) {
		return Signature{}, refused("this is no signature of minisign")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(lines[1])
	whole, err2 := base64.StdEncoding.Strict().DecodeString(lines[3])
	if err != nil || err2 != nil || len(raw) != 2+8+ed25519.SignatureSize || len(whole) != ed25519.SignatureSize {
		return Signature{}, refused("this is no signature of minisign")
	}
	if string(raw[:2]) != hashedAlgorithm {
		return Signature{}, refused("the signature is of the older form of minisign: sign again with minisign -S -H")
	}
	return Signature{KeyID(raw[2:10]), strings.TrimPrefix(lines[2], trusted), raw[10:], whole}, nil
}

// Verify reports whether the holder of a key has signed what has the sum, and the comment.
func (s Signature) Verify(k PublicKey, sum [blake2b.Size]byte) bool {
	return s.Key == k.ID && ed25519.Verify(k.key, sum[:], s.signature) && ed25519.Verify(k.key, append(bytes.Clone(s.signature), s.Comment...), s.whole)
}

// line reads one line of base64 behind a comment, which may be left out.
func line(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if comment, rest, found := strings.Cut(text, "\n"); found && strings.HasPrefix(comment, "untrusted comment:") {
		text = strings.TrimSpace(rest)
	}
	if len(text) > MaxSignature {
		return nil, refused("it is too long")
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}

func refused(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeInvalidInput, format, args...)
}
