package client

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A Context is a host elsewhere, with the token that it knows the user by.
type Context struct {
	Name      string `json:"name"`
	URL       string `json:"url"`
	Token     string `json:"token"`
	Principal string `json:"principal"` // whose token it is, as the host said
}

// Contexts are those that a user of the operating system keeps. The file is theirs alone.
type Contexts struct {
	Current string    `json:"current"` // the name of the one in use; "" for none
	All     []Context `json:"contexts"`
}

// maxContexts bounds the file, in bytes.
const maxContexts = 1 << 20

var contextName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$`)

// ContextsFile is where the contexts of this user are.
func ContextsFile() (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("the contexts have no place: %w; XDG_CONFIG_HOME says where", err)
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "mortise", "contexts.json"), nil
}

// ReadContexts returns the contexts; none where there is no file. A file that others may
// read is refused: what is in it is as good as a password.
func ReadContexts() (c Contexts, err error) {
	path, err := ContextsFile()
	if err != nil {
		return c, nil // there is no place that could have any
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("the contexts cannot be read: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return c, fmt.Errorf("%s has tokens, and others may read or own it (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxContexts+1))
	if err != nil || len(raw) > maxContexts {
		return c, errors.Join(err, fmt.Errorf("%s cannot be read whole", path))
	}
	if json.Unmarshal(raw, &c) != nil {
		return c, fmt.Errorf("%s is not as 'mortise login' writes it; remove it, and log in again", path)
	}
	return c, nil
}

// ChangeContexts changes the contexts, while no other process does.
func ChangeContexts(do func(*Contexts) error) error {
	path, err := ContextsFile()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the contexts cannot be kept: %w", err)
	}
	lock, err := filelock.Acquire(filepath.Join(dir, "contexts.lock"))
	if err != nil {
		return fmt.Errorf("the contexts cannot be kept: %w", err)
	}
	defer lock.Release()
	c, err := ReadContexts()
	if err != nil {
		return err
	}
	if err := do(&c); err != nil {
		return err
	}
	raw, err := json.Marshal(c, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".contexts-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("the contexts cannot be kept: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("the contexts cannot be kept: %w", err)
	}
	return os.Rename(f.Name(), path)
}

// Find returns the context of a name, or of a URL.
func (c *Contexts) Find(name string) (Context, bool) {
	at := strings.TrimRight(name, "/")
	for _, by := range []func(Context) bool{func(one Context) bool { return one.Name == name }, func(one Context) bool { return one.URL == at }} {
		if i := slices.IndexFunc(c.All, by); i >= 0 {
			return c.All[i], true
		}
	}
	return Context{}, false
}

// Keep adds a context, in place of one of its name, and puts it in use.
func (c *Contexts) Keep(one Context) error {
	if !contextName.MatchString(one.Name) {
		return fmt.Errorf("%.200q is no name of a context: letters, digits, and . _ : - between them, up to 100", one.Name)
	}
	if one.Name == Here {
		return fmt.Errorf("%s is the host in the process of a command, and no context", Here)
	}
	c.All = append(slices.DeleteFunc(c.All, func(other Context) bool { return other.Name == one.Name }), one)
	slices.SortFunc(c.All, func(a, b Context) int { return strings.Compare(a.Name, b.Name) })
	c.Current = one.Name
	return nil
}

// Remove takes a context away, and out of use.
func (c *Contexts) Remove(name string) bool {
	n := len(c.All)
	c.All = slices.DeleteFunc(c.All, func(one Context) bool { return one.Name == name })
	if c.Current == name {
		c.Current = ""
	}
	return len(c.All) < n
}
