package secret

import (
	"io"

	"github.com/mortise-dev/mortise/plugin"
)

// A Reader passes on what it reads as long as no secret is in it, whichever way
// that is spelled and however it is cut.
type Reader struct {
	r    io.Reader
	s    *Scrubber
	what string
	tail []byte // that a secret may begin with
}

// Reader returns a reader for what has to be kept byte for byte, and in clear:
// with a secret in it, it is not kept at all. what says which it is.
func (s *Scrubber) Reader(r io.Reader, what string) io.Reader { return &Reader{r: r, s: s, what: what} }

// Read implements [io.Reader]. The error's code is invalid_output.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n <= 0 || r.s.idle() {
		return n, err
	}
	t := r.s.spelled()
	text := append(r.tail, p[:n]...)
	if t.in(text) {
		return 0, plugin.Errorf(plugin.CodeInvalidOutput, "%s has a secret in it, and would be kept as it is: take the secret out of it", r.what)
	}
	r.tail = append([]byte(nil), text[len(text)-t.open(text):]...)
	return n, err
}
