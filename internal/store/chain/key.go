package chain

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyFile is the name of the file that holds the [Key], beside the database.
const KeyFile = "ledger.key"

// A Key authenticates the heads of the chains. It is stored outside the database: an
// attacker who can change only the database cannot sign the change.
type Key [32]byte

// String says what k is and nothing of its value, so that it stays out of logs.
func (k *Key) String() string { return "ledger key" }

// ReadKey reads the key in dir. It refuses a file that others may read and one
// of the wrong length; a missing one is [fs.ErrNotExist].
func ReadKey(dir string) (*Key, error) {
	path := filepath.Join(dir, KeyFile)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o and others may read it: chmod 600 %s", path, mode, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var key Key
	if len(data) != len(key) {
		return nil, fmt.Errorf("%s has %d bytes and a key has %d: restore it from a backup", path, len(data), len(key))
	}
	copy(key[:], data)
	return &key, nil
}

// CreateKey makes the key in dir, durably, and returns it. If another process
// was first it returns that one's.
func CreateKey(dir string) (*Key, error) {
	var key Key
	rand.Read(key[:]) // never fails: crypto/rand ends the process rather
	// The name appears with the whole key behind it or not at all: a link, unlike a rename,
	// does not replace the key of a process that was faster.
	temp, err := writeTemp(dir, KeyFile, key[:])
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	err = os.Link(temp, filepath.Join(dir, KeyFile))
	if errors.Is(err, fs.ErrExist) {
		return ReadKey(dir)
	}
	if err != nil {
		return nil, err
	}
	return &key, SyncDir(dir)
}

// SyncDir makes the names in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// writeTemp writes data to a new file in dir, mode 0600, and makes it durable.
func writeTemp(dir, name string, data []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
