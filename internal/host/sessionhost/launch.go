package sessionhost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/mortise-dev/mortise/plugin"
)

// A Launch says which host the session hosts of a data directory are, and how a program
// starts one: as itself, with the command `keep`.
type Launch struct {
	Home     string // the data directory, an absolute path
	Tenant   string
	Divided  bool   // the tenant is one beside the site's own
	Config   string // the path of the configuration
	Named    bool   // the configuration was named, and is not looked for in Home
	Database string // the URL of the database, where one was named
}

// Place returns where the host of a session is.
func (l Launch) Place(session string) Place {
	return Place{Home: l.Home, Tenant: l.Tenant, Session: session}
}

// Connect returns a client of the host of a session, which is started where there is
// none.
func (l Launch) Connect(ctx context.Context, session string) (*Client, error) {
	identity, err := l.Identity()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := Starter{Place: l.Place(session), Identity: identity, Command: []string{program, "keep", session, "--home", l.Home}}
	for _, pair := range os.Environ() {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "MORTISE_HOME", "MORTISE_AS", "MORTISE_TENANT", "MORTISE_SESSION", "MORTISE_CONFIG", "MORTISE_DATABASE":
		default:
			s.Env = append(s.Env, pair)
		}
	}
	if l.Named {
		s.Command = append(s.Command, "--config", l.Config)
	}
	if l.Divided {
		s.Command = append(s.Command, "--tenant", l.Tenant)
	}
	if l.Database != "" {
		s.Env = append(s.Env, "MORTISE_DATABASE="+l.Database) // there may be a password in it
	}
	client, _, err := s.Connect(ctx)
	return client, err
}

// Identity tells one host from another: the program, its configuration, its data
// directory, and what it is told by the environment. A session host that is another
// host than the one that asks is replaced.
func (l Launch) Identity() (string, error) {
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
	if info, err = os.Stat(l.Home); err != nil {
		return "", err
	}
	add("home", l.Home, " ", inode(info))
	text, err := os.ReadFile(l.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return "", err
	}
	add("configuration", l.Config, " ", string(text))
	add("database", l.Database)
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
	return len(name) > 2 && regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(configuration)
}
