package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Secrets says where the master key is that secrets are encrypted under: in at
// most one of these places, or else in secrets.key in the data directory, which
// the host makes itself. A place holds 32 bytes in base64 or hexadecimal, and on
// further lines the keys that were used before.
type Secrets struct {
	KeyEnv     string   `yaml:"key_env" json:"key_env,omitempty"`         // a variable of the host's environment
	KeyFile    string   `yaml:"key_file" json:"key_file,omitempty"`       // a file that only its owner may read; a relative one is below the configuration file's directory
	KeyCommand []string `yaml:"key_command" json:"key_command,omitempty"` // a command that prints it; relative programs as in a binding
}

// complete makes the path of the file absolute.
func (s *Secrets) complete(dir string) {
	if s.KeyFile != "" && !filepath.IsAbs(s.KeyFile) {
		s.KeyFile = filepath.Join(dir, s.KeyFile)
	}
}

func (s *Secrets) check() (errs []error) {
	places := 0
	for _, named := range []bool{s.KeyEnv != "", s.KeyFile != "", len(s.KeyCommand) > 0} {
		if named {
			places++
		}
	}
	if places > 1 {
		errs = append(errs, errors.New("secrets: the master key is in one place: key_env, key_file or key_command"))
	}
	if strings.ContainsAny(s.KeyEnv, "= \t") {
		errs = append(errs, fmt.Errorf("secrets.key_env: %q is no name of a variable", s.KeyEnv))
	}
	if len(s.KeyCommand) > 0 && strings.TrimSpace(s.KeyCommand[0]) == "" {
		errs = append(errs, errors.New("secrets.key_command: the program has no name"))
	}
	return errs
}
