package editor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// A Change is what becomes of one file.
type Change struct {
	File   string
	Kept   string // where what was there before is kept, "" where nothing was
	Left   string // a copy of what was there before that stays, since the file is not that again; "" for none
	before []byte
	after  []byte
	was    bool   // the file is there
	remove bool   // it is taken away
	spent  string // a copy of ours that is taken away, since the file is that again; "" for none
}

// maxFile is how large a configuration may be: some keep their history in it.
const maxFile = 32 << 20

// keptMark begins the ending of the name of a copy of what was there before. The hash of the copy
// follows, so that a copy of ours is told from a file of the user with a name like it.
const keptMark = ".before-mortise"

func keptName(file string, content []byte) string {
	sum := sha256.Sum256(content)
	return file + keptMark + "-" + hex.EncodeToString(sum[:6])
}

// Put plans the entry in a program's configuration. Nothing is written. Errors: invalid_input
// for a file that is not what the program reads.
func (p Program) Put(file string, e Entry) (*Change, error) {
	c, err := plan(file)
	if err != nil {
		return nil, err
	}
	if c.after, err = p.format.put(c.before, e); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is left as it is: %w", file, err)
	}
	if c.was {
		if !p.has(c.before, e.Name) { // an entry of ours is nothing to go back to
			c.Kept = keptName(c.File, c.before)
		}
	}
	return c, nil
}

// Undo plans the file as it was before [Program.Put]: its very bytes where nothing else has
// changed since, and otherwise what is there now without the entry. A copy of what was there before
// goes only where the file is that again.
func (p Program) Undo(file string, e Entry) (*Change, error) {
	c, err := plan(file)
	if err != nil || !c.was {
		return c, err
	}
	copies, err := copiesOf(c.File)
	if err != nil {
		return nil, err
	}
	for _, name := range copies {
		before, err := read(name)
		if err != nil {
			continue // a file of the user that is none, or is not ours to read
		}
		own := name == keptName(c.File, before)
		if p.has(before, e.Name) {
			continue
		}
		if own {
			c.Left = name
		}
		if put, err := p.format.put(before, e); err == nil && bytes.Equal(put, c.before) {
			c.after, c.Left = before, ""
			if own {
				c.spent = name
			}
			return c, nil
		}
	}
	if put, err := p.format.put(nil, e); err == nil && bytes.Equal(put, c.before) {
		c.remove = true
		return c, nil
	}
	if c.after, err = p.format.remove(c.before, e.Name); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is left as it is: %w", file, err)
	}
	return c, nil
}

// has reports whether a text has an entry of that name, as far as can be told.
func (p Program) has(text []byte, name string) bool {
	without, err := p.format.remove(text, name)
	return err == nil && !bytes.Equal(without, text)
}

// maxCopies is how many copies beside a file are looked at.
const maxCopies = 64

// copiesOf returns the files beside one that may be copies of what was there before.
func copiesOf(file string) (all []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(file))
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(file)+keptMark) && len(all) < maxCopies {
			all = append(all, filepath.Join(filepath.Dir(file), entry.Name()))
		}
	}
	return all, err
}

func plan(file string) (*Change, error) {
	// A configuration is often a link into a repository of such files: its target is written.
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	c := &Change{File: file}
	before, err := read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c.before, c.was = before, err == nil
	return c, nil
}

func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, plugin.Errorf(plugin.CodeInvalidInput, "%s is no file", file))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = plugin.Errorf(plugin.CodeInputTooLarge, "%s has more than %d MiB", file, maxFile>>20)
	}
	return text, err
}

// Changes reports whether the file would be another.
func (c *Change) Changes() bool { return c.remove || !bytes.Equal(c.before, c.after) }

// Write makes the change, unless the file is another than the one that was planned with.
func (c *Change) Write() error {
	if !c.Changes() {
		return nil
	}
	now, err := read(c.File)
	if err != nil && (c.was || !errors.Is(err, fs.ErrNotExist)) || !bytes.Equal(now, c.before) {
		return plugin.Errorf(plugin.CodeConflict, "%s was changed in the meantime: try again", c.File)
	}
	if c.remove {
		return os.Remove(c.File)
	}
	if err := os.MkdirAll(filepath.Dir(c.File), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(c.File); err == nil {
		mode = info.Mode().Perm()
	}
	if c.Kept != "" {
		if err := keep(c.Kept, c.before, mode); err != nil {
			return err
		}
	}
	if err := replace(c.File, c.after, mode); err != nil {
		return err
	}
	if c.spent != "" {
		return os.Remove(c.spent)
	}
	return nil
}

// keep makes a copy, and writes over nothing.
func keep(name string, content []byte, mode fs.FileMode) error {
	switch there, err := read(name); {
	case err == nil && bytes.Equal(there, content):
		return nil
	case err == nil:
		return plugin.Errorf(plugin.CodeConflict, "%s is there, and is no copy of what is changed: move it away", name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return replace(name, content, mode)
}

// replace gives a file its content in one step.
func replace(file string, content []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".mortise-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// around is how many lines are shown before and after what differs.
const around = 3

// Diff returns the lines that differ, with some around them, as diff -u marks them.
func (c *Change) Diff() string {
	old, fresh := lines(c.before), lines(c.after)
	if c.remove {
		fresh = nil
	}
	from := 0
	for from < len(old) && from < len(fresh) && old[from] == fresh[from] {
		from++
	}
	upto := 0
	for upto < len(old)-from && upto < len(fresh)-from && old[len(old)-1-upto] == fresh[len(fresh)-1-upto] {
		upto++
	}
	var b strings.Builder
	show := func(mark string, lines []string) {
		for _, line := range lines {
			b.WriteString(mark + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	first, last := max(0, from-around), max(0, upto-around)
	fmt.Fprintf(&b, "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n", c.File, c.File, first+1, len(old)-last-first, first+1, len(fresh)-last-first)
	show(" ", old[first:from])
	show("-", old[from:len(old)-upto])
	show("+", fresh[from:len(fresh)-upto])
	show(" ", old[len(old)-upto:len(old)-last])
	return b.String()
}

func lines(text []byte) []string {
	var all []string
	for line := range strings.Lines(string(text)) {
		all = append(all, line)
	}
	return all
}
