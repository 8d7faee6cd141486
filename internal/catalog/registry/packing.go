package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/pack"
	"github.com/mortise-dev/mortise/plugin"
)

// A Packed is a package file that was made.
type Packed struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Digest  string   `json:"digest"` // that its files have once they are registered
	Files   []string `json:"files"`  // slash paths in the package file
	Size    int64    `json:"size"`   // of the files, in bytes
	Secrets []string `json:"secrets_suspected"`
}

// Bounds of what says which files are left out.
const (
	maxIgnoreFile = 64 << 10
	maxIgnoring   = 1 << 27 // steps of holding all files against it
)

// Pack writes the package of the plugin in dir to a package file called name: its files
// but for those that no package has and those that .mortiseignore names, below one directory.
// A link is refused, and so is what looks like a secret unless secrets says to take it. A
// tool of Event Mill is packed by itself, at its place in a tree.
func Pack(ctx context.Context, dir, name string, to io.Writer, secrets bool) (Packed, error) {
	m, err := contract.Read(dir)
	if err != nil {
		return Packed{}, unreadable(err)
	}
	tree, place := contract.Tree(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Packed{}, err
	}
	defer root.Close()
	files, err := packable(ctx, root)
	if err != nil {
		return Packed{}, err
	}
	made := Packed{Name: m.Name, Version: m.Version, Secrets: []string{}}
	for _, f := range files {
		if suspected, err := looksSecret(root, f); err != nil {
			return Packed{}, err
		} else if suspected {
			made.Secrets = append(made.Secrets, f.name)
		}
	}
	if len(made.Secrets) > 0 && !secrets {
		return made, refused("%s looks like a secret: put it into %s, or pack it with --with-secrets", strings.Join(made.Secrets, ", "), pack.IgnoreFile)
	}
	out, err := pack.NewWriter(name, to)
	if err != nil {
		return made, err
	}
	top, err := topOf(tree)
	if err != nil {
		return made, err
	}
	sum := newDigest()
	for _, f := range files {
		inTree := path.Join(place, f.name)
		line, err := packOne(ctx, out, root, f, path.Join(top, inTree))
		if err != nil {
			return made, err
		}
		sum.add(file{inTree, f.info}, line)
		made.Files, made.Size = append(made.Files, path.Join(top, inTree)), made.Size+f.info.Size()
	}
	made.Digest = sum.String()
	return made, out.Close()
}

// topOf is what the directory that holds everything is called in a package file.
func topOf(tree string) (string, error) {
	absolute, err := filepath.Abs(tree)
	return filepath.Base(absolute), err
}

// packOne writes one file, and returns the hash of what was written.
func packOne(ctx context.Context, out *pack.Writer, root *os.Root, f file, name string) ([]byte, error) {
	opened, err := open(root, f)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	to, err := out.Add(pack.File{Name: name, Executable: f.executable()}, f.info.Size())
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if err := copyExactly(ctx, io.MultiWriter(to, sum), opened, f); err != nil {
		return nil, err
	}
	return sum.Sum(nil), nil
}

// packable returns the files of a directory that belong into its package.
func packable(ctx context.Context, root *os.Root) ([]file, error) {
	rules := pack.Ignored{}
	text, err := readBounded(root, pack.IgnoreFile, maxIgnoreFile)
	if err == nil {
		rules, err = pack.ParseIgnored(string(text))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files, err := scan(ctx, ignoring{root.FS(), rules, budget.NewSteps(ctx, maxIgnoring)}, false)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, refused("%s leaves nothing of the package", pack.IgnoreFile)
	}
	return files, nil
}

// ignoring is a tree without what is ignored: a link that is left out does no harm.
type ignoring struct {
	fs.FS
	rules pack.Ignored
	work  *budget.Steps
}

func (i ignoring) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(i.FS, name)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() && i.rules.Has(i.work, path.Join(name, e.Name()))
	})
	if why := i.work.Err(); errors.Is(why, budget.ErrSpent) {
		return nil, refused("holding the files against %s %s: write fewer rules, with fewer wildcards", pack.IgnoreFile, why)
	} else if why != nil {
		return nil, why
	}
	return entries, err
}

func readBounded(root *os.Root, name string, most int64) ([]byte, error) {
	opened, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, most+1))
	if err == nil && int64(len(text)) > most {
		err = refused("%s is larger than %d KiB", name, most>>10)
	}
	return text, err
}

// secretNames are those of files that people keep secrets in.
var secretNames = []string{
	".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx", "id_rsa", "id_ecdsa", "id_ed25519", ".netrc", ".pypirc", ".npmrc",
	".git-credentials", "credentials", "credentials.json", "client_secret*.json", "service_account*.json", "service-account*.json", "token.json", "secrets.*",
}

// secretMarks are how private keys begin.
var secretMarks = [][]byte{[]byte("PRIVATE KEY-----"), []byte("minisign secret key"), []byte("minisign encrypted secret key"), []byte("AGE-SECRET-KEY-1")}

// looksSecret reports whether a file has the name of one with secrets, or begins as a private key.
func looksSecret(root *os.Root, f file) (bool, error) {
	base := strings.ToLower(path.Base(f.name))
	if base == ".env.example" || base == ".env.sample" {
		return false, nil
	}
	for _, secret := range secretNames {
		if pattern.Glob(secret, base) {
			return true, nil
		}
	}
	opened, err := open(root, f)
	if err != nil {
		return false, err
	}
	defer opened.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(opened, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("reading %s: %w", f.name, err)
	}
	return slices.ContainsFunc(secretMarks, func(mark []byte) bool { return bytes.Contains(head[:n], mark) }), nil
}

// PackFile makes a package file at a path, "" for NAME-VERSION.tar.gz in the working
// directory, and returns where it is. What stands there already is refused unless force says to
// replace it. Nothing stays where it fails.
func PackFile(ctx context.Context, dir, at string, secrets, force bool) (_ Packed, _ string, err error) {
	if at == "" {
		m, err := contract.Read(dir)
		if err != nil {
			return Packed{}, "", unreadable(err)
		}
		at = strings.ReplaceAll(m.Name, "/", "-") + "-" + m.Version + ".tar.gz"
	}
	if _, err := os.Lstat(at); err == nil && !force {
		return Packed{}, at, plugin.Errorf(plugin.CodeConflict, "%s is there already: replace it with --force", at)
	}
	out, err := os.CreateTemp(filepath.Dir(at), unfinished+"*")
	if err != nil {
		return Packed{}, at, refused("%s cannot be written: %w", at, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	made, err := Pack(ctx, dir, at, out, secrets)
	if err == nil {
		err = readAgain(ctx, out, at)
	}
	if err = errors.Join(err, out.Chmod(0o644), out.Close()); err != nil {
		return made, at, err
	}
	return made, at, os.Rename(out.Name(), at)
}

// readAgain reads a package file as a host would that gets it.
func readAgain(ctx context.Context, file *os.File, name string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return pack.Read(ctx, name, file, info.Size(), func(_ pack.File, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}
