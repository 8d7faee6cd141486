package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/mortise-dev/mortise/plugin"
)

// Identity tells one host from another: the program, its configuration, its data
// directory, and what it is told by the environment. A background host of another identity
// than the command line that finds it is replaced.
func (p Place) Identity() (string, error) {
	home, err := filepath.Abs(p.Home)
	if err != nil {
		return "", err
	}
	_, config, err := ReadConfig(home, p.Config)
	if err != nil {
		return "", &Error{fmt.Errorf("the configuration cannot be used: %w", err)}
	}
	if config, err = filepath.Abs(config); err != nil {
		return "", err
	}
	hash := sha256.New()
	add := func(what string, values ...any) { fmt.Fprintf(hash, "%s %q\n", what, fmt.Sprint(values...)) }
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", plugin.Errorf(plugin.CodeUnavailable, "this program was replaced while it ran; run the command again (%w)", err)
	}
	add("program", program, " ", inode(info), " ", info.Size(), " ", info.ModTime().UnixNano())
	if info, err = os.Stat(home); err != nil {
		return "", err
	}
	add("home", home, " ", inode(info))
	text, err := os.ReadFile(config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return "", err
	}
	add("configuration", config, " ", string(text))
	add("database", p.Database)
	environment := os.Environ()
	slices.Sort(environment)
	for _, pair := range environment {
		if name, _, _ := strings.Cut(pair, "="); matters(name, string(text)) {
			add("environment", pair)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// inode tells a file from another that had its name.
func inode(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Dev, ":", stat.Ino)
	}
	return ""
}

// matters reports whether a variable of the environment changes what a host does:
// one that finds its programs, or one that the configuration names.
func matters(name, configuration string) bool {
	switch name {
	case "PATH", "HOME", "TMPDIR", "PYENV_ROOT", "NVM_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR":
		return true
	}
	return len(name) > 2 && strings.Contains(configuration, name) && regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(configuration)
}
