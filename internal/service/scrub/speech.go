package scrub

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// A speech passes on the content that a call says piece by piece, without secrets
// that are spread over several pieces: one whose end a secret may begin with waits
// for the next, or for the end of the call. Events of other kinds wait for nothing.
// It is safe for concurrent use.
type speech struct {
	to func(plugin.Event)
	s  *secret.Scrubber

	mu   sync.Mutex // guards held
	held []piece
}

// A piece is an event of content, and the text in it.
type piece struct {
	plugin.Event
	member   string // of the object that has the text; "" where it is the text itself
	text     string
	from, to int // where the text stands in Data, in bytes
}

// maxHeld is how many pieces wait at most.
const maxHeld = 256

// textMembers are where an object that is a piece of a text has it: the first that
// is a string.
var textMembers = []string{"text", "delta", "content"}

// pieceOf reports whether an event is a piece of a text. However many members its
// object has, none but that one is taken apart.
func pieceOf(e plugin.Event) (p piece, ok bool) {
	p.Event = e
	d := jsontext.NewDecoder(bytes.NewReader(e.Data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch d.PeekKind() {
	case '"':
		ok = p.take(d)
		return p, ok
	case '{':
		_, _ = d.ReadToken() // which was seen
	default:
		return p, false
	}
	best := len(textMembers)
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return p, false
		}
		if n := slices.Index(textMembers, name.String()); n < 0 || n > best || d.PeekKind() != '"' {
			if d.SkipValue() != nil {
				return p, false
			}
		} else if best, p.member = n, textMembers[n]; !p.take(d) {
			return p, false
		}
	}
	return p, best < len(textMembers)
}

// take reads the text that comes next.
func (p *piece) take(d *jsontext.Decoder) bool {
	raw, err := d.ReadValue()
	if err != nil {
		return false
	}
	p.to = int(d.InputOffset())
	p.from = p.to - len(raw)
	text, err := jsontext.AppendUnquote(nil, raw)
	p.text = string(text)
	return err == nil
}

// with returns the piece with another text.
func (p piece) with(text string) piece {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	p.text, p.Data = text, slices.Concat(p.Data[:p.from], raw, p.Data[p.to:])
	p.to = p.from + len(raw)
	return p
}

// hear takes an event that is without secrets by itself.
func (s *speech) hear(e plugin.Event) {
	if e.Kind != plugin.EventContent {
		s.to(e)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := pieceOf(e)
	if !ok || len(s.held) > 0 && p.member != s.held[0].member {
		s.release(len(s.held))
	}
	if !ok {
		s.to(e)
		return
	}
	s.held = append(s.held, p)
	var all strings.Builder
	for _, p := range s.held {
		all.WriteString(p.text)
	}
	text := all.String()
	if clean := s.s.Text(text); clean != text { // it stays in the first; the others have nothing more to say
		s.held[0], text = s.held[0].with(clean), clean
		for i := range s.held[1:] {
			s.held[1+i] = s.held[1+i].with("")
		}
	}
	// What the open end reaches into waits.
	n, open := len(s.held), s.s.Open(text)
	for open > 0 && n > 0 {
		n--
		open -= len(s.held[n].text)
	}
	if len(s.held)-n >= maxHeld {
		n = len(s.held)
	}
	s.release(n)
}

// release passes on the first n pieces.
func (s *speech) release(n int) {
	for _, p := range s.held[:n] {
		s.to(p.Event)
	}
	s.held = slices.Delete(s.held, 0, n)
}

// end passes on what waits.
func (s *speech) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(len(s.held))
}
