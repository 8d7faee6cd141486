// Package terminal is how a program speaks with a person at a terminal: tables, progress
// and questions, and an escape for every text that could steer the terminal.
package terminal

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// under returns the file that a writer leads to, nil where it leads to none.
func under(w any) *os.File {
	for {
		if wraps, is := w.(interface{ Unwrap() io.Writer }); is {
			w = wraps.Unwrap()
			continue
		}
		f, _ := w.(*os.File)
		return f
	}
}

// Is reports whether a reader or a writer is a terminal.
func Is(w any) bool {
	f := under(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Width returns how many characters fit on a line of a terminal, otherwise where it is
// none.
func Width(w any, otherwise int) int {
	if f := under(w); f != nil {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return otherwise
}

// rewrites reports whether a line that was written can be written again: on a terminal
// that is not a dumb one.
func rewrites(w any) bool { return Is(w) && os.Getenv("TERM") != "dumb" }

// Dim returns text as a terminal shows what matters less. NO_COLOR and TERM=dumb leave
// it as it is.
func Dim(w io.Writer, text string) string {
	if !rewrites(w) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[2m" + text + "\x1b[0m"
}

// A Screen is a writer whose last line may be a status, which is rewritten in place.
// Everything else that is written takes the status away first.
type Screen struct {
	w        io.Writer
	rewrites bool

	mu    sync.Mutex
	shown int // cells of the status that stands there
}

// NewScreen returns a screen without a status.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w, rewrites: rewrites(w)} }

// Unwrap returns what it writes to.
func (s *Screen) Unwrap() io.Writer { return s.w }

// Write writes below what stands there.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.clear(); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}

// Status shows a text in place of the last one, cut to one line; "" shows none. It does
// nothing where no line can be rewritten.
func (s *Screen) Status(text string) {
	s.status(text, func(_ io.Writer, text string) string { return text })
}

// DimStatus is Status for what matters less.
func (s *Screen) DimStatus(text string) { s.status(text, Dim) }

func (s *Screen) status(text string, style func(io.Writer, string) string) {
	if !s.rewrites {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text = OneLine(text, Width(s.w, 80)-1)
	if s.clear() != nil || text == "" {
		return
	}
	_, _ = io.WriteString(s.w, style(s.w, text))
	s.shown = Cells(text)
}

// clear takes the status away.
func (s *Screen) clear() error {
	if s.shown == 0 {
		return nil
	}
	_, err := io.WriteString(s.w, "\r"+strings.Repeat(" ", s.shown)+"\r")
	s.shown = 0
	return err
}
