package config

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Backups is when a host that serves writes a backup by itself, where to, and how many it keeps.
type Backups struct {
	Schedule       string   `yaml:"schedule" json:"schedule"`               // every 24h, or cron 0 3 * * *; empty writes none
	Zone           string   `yaml:"zone" json:"zone"`                       // the time zone of a cron schedule; UTC if empty
	Directory      string   `yaml:"directory" json:"directory"`             // where they are written; absolute, and outside the data directory
	Name           string   `yaml:"name" json:"name"`                       // what their names begin with
	Keep           int      `yaml:"keep" json:"keep"`                       // how many are kept; older ones are deleted
	Recipients     []string `yaml:"recipients" json:"recipients"`           // encrypt them for the holders of these age identities
	PassphraseFile string   `yaml:"passphrase_file" json:"passphrase_file"` // or encrypt them with the passphrase in this file
	WithKeys       bool     `yaml:"with_keys" json:"with_keys"`             // include ledger.key and secrets.key; only if they are encrypted
}

// maxBackups is the largest number of backups that one directory keeps.
const maxBackups = 10_000

var backupName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// Spec returns the schedule of the backups. It is only valid if there is a schedule.
func (b Backups) Spec() (schedule.Spec, error) { return schedule.Parse(b.Schedule, b.Zone) }

// Encrypted reports whether the backups are encrypted.
func (b Backups) Encrypted() bool { return len(b.Recipients) > 0 || b.PassphraseFile != "" }

func (b Backups) check() (errs []error) {
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if b.Schedule != "" {
		if _, err := b.Spec(); err != nil {
			errs = append(errs, fmt.Errorf("backups.schedule: %w", err))
		}
		if b.Directory == "" {
			errs = append(errs, errors.New("backups.schedule needs backups.directory, the directory that backups are written to"))
		}
	}
	if b.Directory != "" && !filepath.IsAbs(b.Directory) {
		refuse("backups.directory is %q; write an absolute path", b.Directory)
	}
	if b.PassphraseFile != "" && !filepath.IsAbs(b.PassphraseFile) {
		refuse("backups.passphrase_file is %q; write an absolute path", b.PassphraseFile)
	}
	if !backupName.MatchString(b.Name) {
		refuse("backups.name is %q; write up to 64 letters, digits, dots, dashes and underscores", b.Name)
	}
	if b.Keep < 1 || b.Keep > maxBackups {
		refuse("backups.keep is %d; write a number from 1 to %d", b.Keep, maxBackups)
	}
	if len(b.Recipients) > 0 && b.PassphraseFile != "" {
		refuse("backups has recipients and passphrase_file; a backup is encrypted in one of the two ways")
	}
	if b.WithKeys && !b.Encrypted() {
		refuse("backups.with_keys needs backups.recipients or backups.passphrase_file: keys are only in a backup that is encrypted")
	}
	return errs
}
