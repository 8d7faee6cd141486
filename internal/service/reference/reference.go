// Package reference keeps the data that plugins look things up in: one file for each
// key, written by the host's owner and readable by every plugin that asks.
//
// A key that is not there is nothing unusual: plugins have to do without.
package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// MaxFile is the largest file that is kept.
const MaxFile = 64 << 20

// endings are what a key's file may end in, in the order in which they are
// looked for. JSON is a value, all else is text.
var endings = []string{".json", ".txt", ".csv"}

// Data is the directory of the files. It is safe for concurrent use, and need
// not exist.
type Data struct{ dir string }

// Open returns the data in a directory.
func Open(dir string) *Data { return &Data{dir} }

// A Key is one thing that can be looked up.
type Key struct {
	Key       string    `json:"key"`
	Form      string    `json:"form"` // json, txt, csv; bundled for what comes along
	Size      int64     `json:"size"`
	UpdatedAt time.Time `json:"updated_at"`
	Version   string    `json:"version,omitempty"` // of the table of techniques: enterprise 18.1, ics 18.1
}

var keyForm = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// CheckKey refuses what can be no key.
func CheckKey(key string) error {
	if !keyForm.MatchString(key) {
		return plugin.Errorf(plugin.CodeInvalidInput, "%.200q can be no key of reference data; a key has 1 to 128 letters, digits, '_', '.' and '-', and does not begin with '.' or '-'", key)
	}
	return nil
}

// Get returns the value of a key: JSON as it is, text as a JSON string. One that
// does not fit into most bytes is an error; found is false where there is none.
// The table of techniques is there before anything was added: an excerpt.
func (d *Data) Get(_ context.Context, key string, most int) (value json.RawMessage, found bool, err error) {
	value, found, err = d.added(key, most)
	if err == nil && !found && key == MitreTechniques {
		if value = bundled(); len(value) > most {
			return nil, false, plugin.Errorf(plugin.CodeUnavailable, "the reference data %s has %d bytes, and %d fit into one answer", key, len(value), most)
		}
		return value, true, nil
	}
	return value, found, err
}

// added is Get for what was added.
func (d *Data) added(key string, most int) (value json.RawMessage, found bool, err error) {
	if !keyForm.MatchString(key) {
		return nil, false, nil // nothing of that name can be there
	}
	root, err := os.OpenRoot(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	for _, ending := range endings {
		raw, err := read(root, key+ending, int64(most))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, plugin.Errorf(plugin.CodeUnavailable, "the reference data %s cannot be read: %w", key, err)
		}
		value, err := valueOf(raw, ending)
		if err != nil {
			return nil, false, plugin.Errorf(plugin.CodeUnavailable, "the reference data %s cannot be used: %w; 'mortise reference add %s FILE' puts another in its place", key, err, key)
		}
		return value, true, nil
	}
	return nil, false, nil
}

// read reads one regular file of at most that many bytes.
func read(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("it has more than %d bytes, which fit into one answer", most)
	}
	return raw, err
}

// valueOf reads a file's content by its ending.
func valueOf(raw []byte, ending string) (json.RawMessage, error) {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if ending == ".json" {
		value := jsontext.Value(raw)
		if err := value.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); err != nil {
			return nil, fmt.Errorf("it is not one JSON value: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
		}
		return json.RawMessage(value), nil
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("it is not UTF-8")
	}
	return json2.Marshal(string(raw))
}

// List returns all keys, in the order of the alphabet; the bundled table of techniques is
// one where no other is in its place.
func (d *Data) List() ([]Key, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	keys := []Key{}
	for _, entry := range entries {
		ending := filepath.Ext(entry.Name())
		key := strings.TrimSuffix(entry.Name(), ending)
		if !slices.Contains(endings, ending) || !keyForm.MatchString(key) || slices.ContainsFunc(keys, func(k Key) bool { return k.Key == key }) {
			continue
		}
		info, err := os.Stat(filepath.Join(d.dir, entry.Name()))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		found := Key{Key: key, Form: ending[1:], Size: info.Size(), UpdatedAt: info.ModTime().UTC().Truncate(time.Microsecond)}
		found.Version = d.version(found)
		keys = append(keys, found)
	}
	if !slices.ContainsFunc(keys, func(k Key) bool { return k.Key == MitreTechniques }) {
		keys = append(keys, bundledKey())
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Key, b.Key) })
	return keys, nil
}

// version is that of a key's data, which the table of techniques alone has.
func (d *Data) version(k Key) string {
	if k.Key != MitreTechniques || k.Form != "json" {
		return ""
	}
	value, _, err := d.Get(context.Background(), k.Key, MaxFile)
	if err != nil {
		return "" // who looks it up is told
	}
	return versionsOf(value)
}

// Previous is the form that puts back what a key had before its last change.
const Previous = "previous"

// before is the name under which that is kept; it can be no key's.
func before(key string) string { return ".before-" + key }

// Restore puts back what a key had before its last change; a second time puts back that one.
// Error: not_found where nothing was there before.
func (d *Data) Restore(key string) (Key, error) {
	if err := CheckKey(key); err != nil {
		return Key{}, err
	}
	for _, ending := range endings {
		raw, err := os.ReadFile(filepath.Join(d.dir, before(key)+ending))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Key{}, err
		}
		return d.set(key, ending, raw, "what was there before")
	}
	return Key{}, plugin.Errorf(plugin.CodeNotFound, "nothing is kept of what %s was before: it was changed once at most", key)
}

// keepBefore keeps what a key has, in the place of what is kept already.
func (d *Data) keepBefore(key string) error {
	for _, ending := range endings {
		now := filepath.Join(d.dir, key+ending)
		if _, err := os.Lstat(now); err != nil {
			continue
		}
		for _, other := range endings {
			if err := os.Remove(filepath.Join(d.dir, before(key)+other)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return os.Link(now, filepath.Join(d.dir, before(key)+ending))
	}
	return nil
}

// Add puts the content of a file in the place of a key's. The ending of its name
// says what it is: .json, .csv, anything else is text.
func (d *Data) Add(key, file string) (Key, error) {
	if err := CheckKey(key); err != nil {
		return Key{}, err
	}
	form, raw, err := ReadGiven(file)
	if err != nil {
		return Key{}, err
	}
	return d.set(key, "."+form, raw, file)
}

// Put puts data in the place of a key's. form is json, csv or txt; anything else is text.
// With [Previous] there is no data: it is [Data.Restore].
func (d *Data) Put(key, form string, raw []byte) (Key, error) {
	if err := CheckKey(key); err != nil {
		return Key{}, err
	}
	if form == Previous {
		return d.Restore(key)
	}
	if len(raw) > MaxFile {
		return Key{}, plugin.Errorf(plugin.CodeInputTooLarge, "%d bytes; reference data has at most %d", len(raw), MaxFile)
	}
	return d.set(key, "."+form, raw, "the data")
}

// set keeps data that ends so; name is what errors call it.
func (d *Data) set(key, ending string, raw []byte, name string) (Key, error) {
	if !slices.Contains(endings, ending) {
		ending = ".txt"
	}
	value, err := valueOf(raw, ending)
	if err != nil {
		return Key{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", name, err)
	}
	if ending == ".json" {
		raw = value
	}
	return d.put(key, ending, raw)
}

// ReadGiven reads a file that a person names: its data, and the form json, csv or txt that
// its name says. JSON is checked. Errors: invalid_input, input_too_large.
func ReadGiven(path string) (form string, raw []byte, err error) {
	raw, err = readGiven(path)
	if err != nil {
		return "", nil, err
	}
	ending := strings.ToLower(filepath.Ext(path))
	if !slices.Contains(endings, ending) {
		ending = ".txt"
	}
	if _, err := valueOf(bytes.Clone(raw), ending); err != nil { // which writes into what it reads
		return "", nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", path, err)
	}
	return ending[1:], raw, nil
}

func readGiven(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the file cannot be read: %w", err)
	case !info.Mode().IsRegular():
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is no regular file", path)
	case info.Size() > MaxFile:
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "%s has %d bytes; reference data has at most %d", path, info.Size(), MaxFile)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the file cannot be read: %w", err)
	}
	return raw, nil
}

// put writes a key's file whole, and takes away what it had under other endings.
func (d *Data) put(key, ending string, raw []byte) (Key, error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return Key{}, err
	}
	temp, err := os.CreateTemp(d.dir, ".new-")
	if err != nil {
		return Key{}, err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(raw)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return Key{}, err
	}
	if err := d.keepBefore(key); err != nil {
		return Key{}, err
	}
	path := filepath.Join(d.dir, key+ending)
	if err := os.Rename(temp.Name(), path); err != nil {
		return Key{}, err
	}
	for _, other := range endings {
		if other != ending {
			if err := os.Remove(filepath.Join(d.dir, key+other)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return Key{}, err
			}
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return Key{}, err
	}
	done := Key{Key: key, Form: ending[1:], Size: info.Size(), UpdatedAt: info.ModTime().UTC().Truncate(time.Microsecond)}
	done.Version = d.version(done)
	return done, nil
}

// Remove takes a key away.
func (d *Data) Remove(key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	gone := false
	for _, ending := range endings {
		err := os.Remove(filepath.Join(d.dir, key+ending))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		gone = gone || err == nil
	}
	if !gone {
		return plugin.Errorf(plugin.CodeNotFound, "there is no reference data called %s; 'mortise reference list' shows what there is", key)
	}
	return nil
}
