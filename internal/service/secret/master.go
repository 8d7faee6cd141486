package secret

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

// KeyFile is the name of the file that holds the master key in the data
// directory, where the configuration names no other place.
const KeyFile = "secrets.key"

// Bounds of what a place of keys says.
const (
	maxKeys     = 16
	maxKeyText  = 4 << 10
	commandTime = 10 * time.Second
)

// A Place is where the master key is kept: a variable of the host's environment,
// a file, a command that prints it, or else the host's own file in Dir. It holds
// keys of 32 bytes in base64 or hexadecimal, one a line; the first is used, and
// the others are for what was encrypted before.
type Place struct {
	Env     string
	File    string
	Command []string
	Dir     string // the data directory
}

// Own reports whether the host itself makes and changes the key.
func (p Place) Own() bool { return p.Env == "" && p.File == "" && len(p.Command) == 0 }

// String names the place for people.
func (p Place) String() string {
	switch {
	case p.Env != "":
		return "the environment variable " + p.Env
	case p.File != "":
		return p.File
	case len(p.Command) > 0:
		return "the command " + p.Command[0]
	}
	return p.path()
}

func (p Place) path() string { return filepath.Join(p.Dir, KeyFile) }

// A master encrypts the keys of secrets.
type master struct {
	key
	print string // by which it is known
}

func masterOf(k key) master {
	sum := sha256.Sum256(append([]byte("mortise master key\n"), k[:]...))
	return master{k, hex.EncodeToString(sum[:8])}
}

// read returns the keys of the place, none where nothing is there yet.
func (p Place) read(ctx context.Context) ([]master, error) {
	text, err := p.text(ctx)
	if err != nil || text == nil {
		return nil, err
	}
	var all []master
	for _, word := range strings.Fields(strings.ReplaceAll(string(text), ",", " ")) {
		k, ok := parseKey(word)
		if !ok || len(all) == maxKeys {
			return nil, p.wrong("what is there is no master key: it is at most %d lines, each 32 bytes in base64 or hexadecimal, such as 'openssl rand -base64 32' prints", maxKeys)
		}
		all = append(all, masterOf(k))
	}
	if len(all) == 0 {
		return nil, p.wrong("nothing is there; it holds the master key of secrets, 32 bytes in base64 or hexadecimal")
	}
	return all, nil
}

func parseKey(word string) (k key, ok bool) {
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString, base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString} {
		if raw, err := decode(word); err == nil && len(raw) == len(k) {
			return key(raw), true
		}
	}
	return k, false
}

func (p Place) wrong(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeUnavailable, "the secrets cannot be used: %s: %w", p, fmt.Errorf(format, args...))
}

// text returns what the place says, nil where the host has made no key yet.
func (p Place) text(ctx context.Context) ([]byte, error) {
	switch {
	case p.Env != "":
		text, found := os.LookupEnv(p.Env)
		if !found {
			return nil, p.wrong("it is not set; put the master key of secrets there before starting the host")
		}
		return []byte(text), nil
	case len(p.Command) > 0:
		return p.run(ctx)
	case p.File != "":
		return p.open(p.File)
	}
	text, err := p.open(p.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (p Place) open(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, p.wrong("it cannot be read: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, p.wrong("it cannot be read: %w", err)
	case !info.Mode().IsRegular():
		return nil, p.wrong("it is no regular file")
	case info.Mode().Perm()&0o077 != 0:
		return nil, p.wrong("others can read it; let only its owner: chmod 600 %s", path)
	case info.Size() > maxKeyText:
		return nil, p.wrong("it has more than %d bytes and holds something else than keys", maxKeyText)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyText))
	if err != nil {
		return nil, p.wrong("it cannot be read: %w", err)
	}
	return text, nil
}

func (p Place) run(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	var out, errs bounded
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	if err := cmd.Run(); err != nil {
		return nil, p.wrong("it did not print the master key: %w %.300q", err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

// A bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxKeyText-b.Len())])
	return len(p), nil
}

// create makes the host's own key, durably. If another process was first, its key
// counts.
func (p Place) create() error {
	temp, err := p.draft(masterOf(newKey()))
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, p.path()); err != nil && !errors.Is(err, fs.ErrExist) {
		return p.wrong("it cannot be made: %w", err)
	}
	return chain.SyncDir(p.Dir)
}

// replace rewrites the host's own keys, durably: all of them or none.
func (p Place) replace(keys ...master) error {
	temp, err := p.draft(keys...)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, p.path()); err != nil {
		os.Remove(temp)
		return p.wrong("it cannot be changed: %w", err)
	}
	return chain.SyncDir(p.Dir)
}

// draft writes keys to a new file, mode 0600, durably.
func (p Place) draft(keys ...master) (path string, err error) {
	var text strings.Builder
	for _, m := range keys {
		text.WriteString(base64.StdEncoding.EncodeToString(m.key[:]) + "\n")
	}
	path = filepath.Join(p.Dir, "."+KeyFile+"."+strings.ToLower(rand.Text()))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", p.wrong("it cannot be written: %w", err)
	}
	_, err = f.WriteString(text.String())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return "", p.wrong("it cannot be written: %w", err)
	}
	return path, nil
}
