// Package chain is what makes entries a chain that no change goes unnoticed in: the hash of
// an entry, the key that signs heads, anchors outside the database, and what is sealed.
package chain

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/mortise-dev/mortise/plugin"
)

// A Head is the end of a chain, with proof that this host put it there.
type Head struct {
	ID   int64
	Node string
	Seq  int64  // of the last entry
	Head string // its hash
	MAC  string // of the others but Node, with the host's key

	// Authority is what the head signs of the rows that decide authority. It is empty in
	// heads of earlier releases.
	Authority string
}

// Each text that is hashed or authenticated begins with what it is, so that
// none can ever be passed off as another.
const (
	entryDomain  = "mortise entry 1\n"
	headDomain   = "mortise chain head 1\n"
	signedDomain = "mortise chain head 2\n" // with what decides authority
	anchorDomain = "mortise anchor 1\n"
	keyDomain    = "mortise key 1\n"
	closedDomain = "mortise approval 1\n"
	liveDomain   = "mortise live row 1\n"
	padDomain    = "mortise live rows 1\n"
	keptDomain   = "mortise kept row 1\n"
)

// ErrTampered means the chain's head is not what this host last signed. Appending would
// sign a forged history.
var ErrTampered = errors.New("the ledger was changed from outside; run mortise ledger verify")

// Hash returns the hash of e in hexadecimal: of all its fields but Hash, the
// body by its own hash, each text after its length. Times count to the
// microsecond.
func Hash(e *plugin.Entry) string {
	body := sha256.Sum256(e.Body)
	buf := make([]byte, 0, 512)
	buf = append(buf, entryDomain...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(e.Chain))
	buf = binary.BigEndian.AppendUint64(buf, uint64(e.Seq))
	buf = binary.BigEndian.AppendUint64(buf, uint64(e.At.UnixMicro()))
	for _, text := range [...]string{e.Tenant, string(e.Kind), e.Subject, e.Principal, e.Prev} {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(text)))
		buf = append(buf, text...)
	}
	buf = append(buf, body[:]...)
	sum := sha256.Sum256(buf)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// Sign returns the MAC that makes row the head of its chain.
func (k *Key) Sign(row Head) string {
	if row.Authority == "" {
		return k.mac(headDomain, row.ID, row.Seq, row.Head)
	}
	return k.mac(signedDomain, row.ID, row.Seq, row.Head+"\n"+row.Authority)
}

// Signed reports whether row's MAC is this key's.
func (k *Key) Signed(row Head) bool {
	return hmac.Equal([]byte(row.MAC), []byte(k.Sign(row)))
}

// ID returns what tells k from other keys, and nothing of its value.
func (k *Key) ID() string { return k.mac(keyDomain, 0, 0, "") }

func (k *Key) mac(domain string, chain, seq int64, head string) string {
	mac := hmac.New(sha256.New, k[:])
	buf := make([]byte, 0, 128)
	buf = append(buf, domain...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(chain))
	buf = binary.BigEndian.AppendUint64(buf, uint64(seq))
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(head)))
	buf = append(buf, head...)
	mac.Write(buf)
	return hex.EncodeToString(mac.Sum(nil))
}

// SignKept returns the MAC of a row that bears one of its own, by the hash of the row.
func (k *Key) SignKept(digest string) string { return k.mac(keptDomain, 0, 0, digest) }

// SignClosed returns the MAC of an approval that takes no answer any more, by its text.
func (k *Key) SignClosed(text string) string { return k.mac(closedDomain, 0, 0, text) }

// Holds reports whether mac is what the key makes it.
func Holds(mac, want string) bool { return hmac.Equal([]byte(mac), []byte(want)) }
