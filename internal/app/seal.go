package app

import "github.com/mortise-dev/mortise/internal/store/chain"

// seal encrypts what a client keeps for the host, with the key that all nodes have.
func (a *App) seal(plain []byte, place ...string) ([]byte, error) {
	key, err := chain.ReadKey(a.Home)
	if err != nil {
		return nil, err
	}
	return key.Seal(plain, nil, place...)
}

// unseal is the reverse of seal.
func (a *App) unseal(sealed []byte, place ...string) ([]byte, error) {
	key, err := chain.ReadKey(a.Home)
	if err != nil {
		return nil, err
	}
	plain, _, err := key.Unseal(sealed, place...)
	return plain, err
}
