package editor

import (
	"bytes"
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
	before []byte
	after  []byte
	was    bool // the file is there
	remove bool // it is taken away
	undo   bool
}

// maxFile is how large a configuration may be: some keep their history in it.
const maxFile = 32 << 20

// keptSuffix is what the name of a file ends in that has what was there before.
const keptSuffix = ".before-mortise"

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
	_, err = os.Lstat(c.File + keptSuffix)
	if kept := err == nil; c.was && !kept {
		if without, err := p.format.remove(c.before, e.Name); err == nil && bytes.Equal(without, c.before) { // an entry of ours is nothing to go back to
			c.Kept = c.File + keptSuffix
		}
	}
	return c, nil
}

// Undo plans the file as it was before [Program.Put]: its very bytes where nothing else has
// changed since, and otherwise what is there now without the entry.
func (p Program) Undo(file string, e Entry) (*Change, error) {
	c, err := plan(file)
	if err != nil || !c.was {
		return c, err
	}
	c.undo = true
	before, err := read(c.File + keptSuffix)
	kept := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if put, err := p.format.put(before, e); err == nil && bytes.Equal(put, c.before) {
		c.after, c.remove = before, !kept
		return c, nil
	}
	if c.after, err = p.format.remove(c.before, e.Name); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is left as it is: %w", file, err)
	}
	return c, nil
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
		if err := replace(c.Kept, c.before, mode); err != nil {
			return err
		}
	}
	if err := replace(c.File, c.after, mode); err != nil {
		return err
	}
	if c.undo {
		if err := os.Remove(c.File + keptSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
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
