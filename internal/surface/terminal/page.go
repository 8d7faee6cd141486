package terminal

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/term"
)

// A Page is what a command shows again and again on a terminal: what is written between
// two calls of Show takes the place of what stood there.
type Page struct {
	w    io.Writer
	next bytes.Buffer
	last string
}

// NewPage returns an empty page, nil where nothing that was written can be rewritten.
func NewPage(w io.Writer) *Page {
	if !rewrites(w) {
		return nil
	}
	return &Page{w: w}
}

// Unwrap returns what it is shown on.
func (p *Page) Unwrap() io.Writer { return p.w }

// Write adds to what is shown next.
func (p *Page) Write(text []byte) (int, error) { return p.next.Write(text) }

// Show shows what was written, as far as the terminal has lines for it.
func (p *Page) Show() error {
	lines := strings.Split(strings.TrimSuffix(p.next.String(), "\n"), "\n")
	p.next.Reset()
	if width, height, err := term.GetSize(int(under(p.w).Fd())); err == nil && width > 0 && height > 2 {
		if len(lines) >= height {
			lines = append(lines[:height-2], "…")
		}
		for i, line := range lines {
			lines[i] = clipped(line, width)
		}
	}
	begin := "\x1b[H" // to the top left
	if p.last == "" {
		begin += "\x1b[2J" // and clear all
	}
	// Each line clears what stood behind it, the last one all below.
	text := strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J"
	if text == p.last {
		return nil
	}
	p.last = text
	_, err := io.WriteString(p.w, begin+text)
	return err
}

// clipped returns the beginning of a line that fits into so many cells.
func clipped(line string, most int) string {
	if Cells(line) <= most {
		return line
	}
	n := 0
	for i, r := range line {
		if n += Cells(string(r)); n > most-1 {
			return line[:i] + "…"
		}
	}
	return line
}
