package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// maxPassphrase bounds a file that holds one.
const maxPassphrase = 4 << 10

// Recipients returns whom a backup is encrypted for: the recipients of age in names, or those
// who know the passphrase in a file.
func Recipients(names []string, passphraseFile string) (all []age.Recipient, err error) {
	if passphraseFile != "" {
		if len(names) > 0 {
			return nil, errors.New("a backup is encrypted for recipients or with a passphrase, not both")
		}
		text, err := passphraseIn(passphraseFile)
		if err != nil {
			return nil, err
		}
		r, err := age.NewScryptRecipient(text)
		if err != nil {
			return nil, fmt.Errorf("--passphrase-file: %w", err)
		}
		return []age.Recipient{r}, nil
	}
	for _, name := range names {
		r, err := age.ParseRecipients(strings.NewReader(name))
		if err != nil {
			return nil, fmt.Errorf("--recipient %.100s is none of age: %w", name, err)
		}
		all = append(all, r...)
	}
	return all, nil
}

// Identities returns what opens a backup: the identities of age in files, and the passphrase
// in a file of its own.
func Identities(files []string, passphraseFile string) (all []age.Identity, err error) {
	if passphraseFile != "" {
		text, err := passphraseIn(passphraseFile)
		if err != nil {
			return nil, err
		}
		i, err := age.NewScryptIdentity(text)
		if err != nil {
			return nil, fmt.Errorf("--passphrase-file: %w", err)
		}
		all = append(all, i)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--identity: %w", err)
		}
		found, err := age.ParseIdentities(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("--identity %s has none of age: it is written by age-keygen", file)
		}
		all = append(all, found...)
	}
	return all, nil
}

func passphraseIn(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("--passphrase-file: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPassphrase+1))
	text := strings.TrimRight(string(raw), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("--passphrase-file: %w", err)
	case text == "":
		return "", fmt.Errorf("--passphrase-file: %s is empty", file)
	case len(raw) > maxPassphrase:
		return "", fmt.Errorf("--passphrase-file: %s has more than %d bytes", file, maxPassphrase)
	}
	return text, nil
}
