package secret

import "github.com/mortise-dev/mortise/internal/store/chain"

// A Sealer encrypts what clients keep for a host, with the key of its ledger, which all nodes
// of the host have.
type Sealer struct {
	Home string // the data directory
}

// Seal encrypts plain and binds it to a place.
func (s Sealer) Seal(plain []byte, place ...string) ([]byte, error) {
	key, err := chain.ReadKey(s.Home)
	if err != nil {
		return nil, err
	}
	return key.Seal(plain, nil, place...)
}

// Unseal is the reverse of Seal.
func (s Sealer) Unseal(sealed []byte, place ...string) ([]byte, error) {
	key, err := chain.ReadKey(s.Home)
	if err != nil {
		return nil, err
	}
	plain, _, err := key.Unseal(sealed, place...)
	return plain, err
}
