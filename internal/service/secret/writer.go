package secret

import (
	"io"
	"sync"
)

// A Writer passes on what is written to it without secrets, also where one is
// written in parts: an end that a secret may begin with is kept back until there
// is more, or until Close. It is safe for concurrent use.
type Writer struct {
	w io.Writer
	s *Scrubber

	mu      sync.Mutex // guards the rest
	kept    []byte     // not yet written
	covered int        // how many of the first bytes of kept belong to a secret whose mark was written
}

// Writer returns a writer that scrubs what goes to w.
func (s *Scrubber) Writer(w io.Writer) *Writer { return &Writer{w: w, s: s} }

// Unwrap returns what it writes to.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Write implements [io.Writer].
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s.idle() && len(w.kept) == 0 {
		return w.w.Write(p)
	}
	t := w.s.spelled()
	text := append(w.kept, p...)
	upto := len(text) - t.open(text)
	out, rest := t.scrub(text, upto, w.covered)
	w.kept, w.covered = append([]byte(nil), text[upto:]...), rest
	if _, err := w.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what was kept back. It does not close what it writes to.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) == 0 {
		return nil
	}
	out, _ := w.s.spelled().scrub(w.kept, len(w.kept), w.covered)
	w.kept, w.covered = nil, 0
	_, err := w.w.Write(out)
	return err
}
