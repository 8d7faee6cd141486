// Package environment installs what one Python plugin requires into a directory that is
// that plugin's alone.
//
// A plugin says what it requires in requirements.txt: one version of each project, with
// the hashes that its files may have, everything that these require in turn included. So
// nothing is resolved and nothing is run: for each line one wheel is chosen, fetched from
// an index ([PEP 503], [PEP 691]) or taken from a directory, held against its hashes and
// unpacked. Source distributions, which run code to be installed, are refused.
//
// [PEP 503]: https://peps.python.org/pep-0503/
// [PEP 691]: https://peps.python.org/pep-0691/
package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// The names of files and directories of a package.
const (
	File     = "requirements.txt"  // says what it requires
	Dir      = "_environment"      // has what was installed, which is on the path of the plugin alone
	ListFile = "_environment.json" // says what that is: a [plugin.Environment]
)

// Options say where wheels come from, and what they may amount to.
type Options struct {
	Dir   string   // a directory of wheels; nothing is fetched where it is given
	Index string   // else the address of an index, with a slash at its end
	Hosts []string // that files may be fetched from, beside the host of the index

	Unhashed bool          // lines without hashes are taken
	Timeout  time.Duration // of all of it
	MaxBytes int64         // of what is unpacked, and of each file that is fetched
	Python   string        // the version of the interpreter, as 3.11.7

	Client *http.Client // nil but in tests
}

// A source has the files of projects.
type source interface {
	// files returns those of a project, in no order.
	files(ctx context.Context, project string) ([]candidate, error)
	// open reads one.
	open(ctx context.Context, c candidate) (io.ReadCloser, error)
	// said names it for people.
	said() string
}

// A candidate is a file that a source has.
type candidate struct {
	name   string // of the file
	place  string // its path or address
	sha256 string // as the source says; "" where it does not
	yanked bool   // its author has withdrawn it
}

// Build installs what requirements ask for into dir, which must be there and be empty, and
// returns what was installed. temp is a directory for what is fetched. The error is
// invalid_input for what is wrong with the requirements or the wheels, unavailable for a
// source that does not answer, and timeout.
func Build(ctx context.Context, o Options, requirements []byte, dir, temp string) (*plugin.Environment, error) {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, plugin.Errorf(plugin.CodeTimeout, "installing what the plugin requires took longer than %s (plugins.environments.timeout)", o.Timeout))
		defer cancel()
	}
	made, err := build(ctx, o, requirements, dir, temp)
	var known *plugin.Error
	switch {
	case err == nil:
		return made, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &known):
		return nil, err
	}
	return nil, fmt.Errorf("installing what the plugin requires: %w", err)
}

func build(ctx context.Context, o Options, requirements []byte, dir, temp string) (*plugin.Environment, error) {
	wanted, err := read(requirements, o.Unhashed)
	if err != nil {
		return nil, err
	}
	fits, err := tagsOf(o.Python)
	if err != nil {
		return nil, err
	}
	from, err := o.source()
	if err != nil {
		return nil, err
	}
	into, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer into.Close()
	u := &unpacking{to: into, left: o.MaxBytes, by: map[string]string{}}
	made := &plugin.Environment{Python: fits.version(), From: from.said(), Wheels: []plugin.Wheel{}}
	for _, w := range wanted {
		wheel, err := o.install(ctx, w, from, fits, u, temp)
		if err != nil {
			return nil, err
		}
		made.Wheels = append(made.Wheels, wheel)
	}
	slices.SortFunc(made.Wheels, func(a, b plugin.Wheel) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.New()
	for _, w := range made.Wheels {
		fmt.Fprintf(sum, "%s %s %s\n", w.Name, w.Version, w.SHA256)
	}
	made.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return made, nil
}

func (o Options) source() (source, error) {
	switch {
	case o.Dir != "":
		return directory(o.Dir), nil
	case o.Index != "":
		return newIndex(o)
	}
	return nil, refused("neither an index nor a directory of wheels is configured (plugins.environments), and --from names none")
}

// install unpacks the wheel that a line asks for.
func (o Options) install(ctx context.Context, w requirement, from source, fits tags, u *unpacking, temp string) (plugin.Wheel, error) {
	all, err := from.files(ctx, w.name)
	if err != nil {
		return plugin.Wheel{}, err
	}
	chosen, err := w.choose(all, fits)
	if err != nil {
		return plugin.Wheel{}, fmt.Errorf("%w (%s)", err, from.said())
	}
	path, hash, err := o.fetch(ctx, from, chosen, temp)
	if err != nil {
		return plugin.Wheel{}, err
	}
	defer os.Remove(path)
	if len(w.hashes) > 0 && !slices.Contains(w.hashes, hash) || chosen.sha256 != "" && chosen.sha256 != hash {
		return plugin.Wheel{}, refused("%s has the hash sha256:%s, which is not what %s was to have", chosen.name, hash, w.name)
	}
	if err := u.wheel(ctx, path, chosen.name, w); err != nil {
		return plugin.Wheel{}, err
	}
	return plugin.Wheel{Name: w.name, Version: w.version, File: chosen.name, SHA256: hash}, nil
}

// fetch copies a file below temp, and hashes what it copies.
func (o Options) fetch(ctx context.Context, from source, c candidate, temp string) (path, hash string, err error) {
	in, err := from.open(ctx, c)
	if err != nil {
		return "", "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(temp, "wheel-*.zip")
	if err != nil {
		return "", "", err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, o.MaxBytes+1))
	if err = errors.Join(err, out.Close()); err == nil && n > o.MaxBytes {
		err = refused("%s is larger than %d bytes (plugins.environments.size)", c.name, o.MaxBytes)
	} else if err != nil {
		err = plugin.Errorf(plugin.CodeUnavailable, "reading %s: %w", c.name, err)
	}
	if err != nil {
		os.Remove(out.Name())
		return "", "", err
	}
	return out.Name(), hex.EncodeToString(sum.Sum(nil)), nil
}

// A directory is one of wheels.
type directory string

const maxFiles = 10_000 // of a directory of wheels

func (d directory) said() string { return string(d) }

func (d directory) files(_ context.Context, project string) ([]candidate, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, refused("the directory of wheels cannot be read: %w", err)
	}
	if len(entries) > maxFiles {
		return nil, refused("%s holds more than %d files", d, maxFiles)
	}
	var found []candidate
	for _, entry := range entries {
		if w, ok := parseWheel(entry.Name()); ok && w.name == project && entry.Type().IsRegular() {
			found = append(found, candidate{name: entry.Name(), place: filepath.Join(string(d), entry.Name())})
		}
	}
	return found, nil
}

func (d directory) open(_ context.Context, c candidate) (io.ReadCloser, error) {
	return os.Open(c.place)
}

func refused(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeInvalidInput, format, args...)
}
