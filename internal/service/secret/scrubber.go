package secret

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/plugin"
)

// Mark stands in the place of a secret.
const Mark = "[secret]"

// Bounds of what a scrubber looks for.
const (
	shortest   = 8        // bytes: a shorter value is in too many texts that have nothing to do with it
	maxKnown   = 4096     // values
	maxSpelled = 64 << 20 // bytes of all their spellings together

	maxOwned        = 512     // of these, values that calls of one plugin in one tenant brought up
	maxOwnedSpelled = 8 << 20 // likewise, bytes

	maxLearned        = 1024           // tokens, which have a space of their own
	maxLearnedSpelled = 16 << 20       // bytes of their spellings
	learnedFor        = 24 * time.Hour // that a token is looked for at least, since it was last told
)

// A Scrubber takes secrets out of texts: the values that it was told of, as they
// are and in base64, hexadecimal, percent-encoding, JSON strings and UTF-16. A
// value that it was told of is never forgotten to make room for others: what does
// not fit is refused, and must not be given out then. Only tokens, which expire,
// are forgotten after a day. It is safe for concurrent use; a nil one changes
// nothing.
type Scrubber struct {
	known atomic.Int64 // how many; to be quick where there is none
	blind bool
	all   atomic.Bool // every text is hidden

	mu     sync.Mutex // guards the rest
	values map[string]*known
	shares map[string]share // of owners; that of tokens is learned
	size   int              // of all spellings but those of tokens
	count  int              // likewise, values
	table  *table           // nil when it has to be built again
	now    func() time.Time // time.Now where it is nil
}

type known struct {
	value     string
	spellings []string
	size      int
	owner     string
	told      time.Time
}

// A share is what one owner has of the space.
type share struct{ count, size int }

// learned is the owner of tokens. No plugin in a tenant has such a name.
const learned = "\x00tokens"

// NewScrubber returns a scrubber that knows nothing.
func NewScrubber() *Scrubber { return &Scrubber{} }

// Blind returns a scrubber that knows nothing, whatever it is told. With it a test
// shows that it would notice if secrets were taken out no more.
func Blind() *Scrubber { return &Scrubber{blind: true} }

// Know adds a value to those that are removed, for good. It ignores a value of fewer
// than 8 bytes. If the error is not nil, the value is not looked for, and the caller
// must not disclose it.
func (s *Scrubber) Know(value string) error { return s.tell("", value) }

// Keep is Know for a value that came up in a call of that owner, a plugin in a
// tenant, which has a share of the space and no more.
func (s *Scrubber) Keep(owner, value string) error { return s.tell(owner, value) }

// Learn is Know for a token, which is looked for as long as tokens are good for.
func (s *Scrubber) Learn(value string) error { return s.tell(learned, value) }

// HideAll has every text hidden: for a scrubber that cannot know all it should.
func (s *Scrubber) HideAll() { s.all.Store(true) }

func (s *Scrubber) tell(owner, value string) error {
	if s == nil || s.blind {
		return nil
	}
	err := s.know(owner, value)
	if trimmed := strings.TrimSpace(value); err == nil && trimmed != value {
		err = s.know(owner, trimmed)
	}
	return err
}

func (s *Scrubber) know(owner, value string) error {
	if len(value) < shortest {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.shares = map[string]*known{}, map[string]share{}
	}
	now := time.Now()
	if s.now != nil {
		now = s.now()
	}
	k := s.values[value]
	if k != nil && (k.owner != learned || owner == learned) {
		k.told = now
		return nil
	}
	if k == nil {
		k = &known{value: value, spellings: spellings(value)}
		for _, text := range k.spellings {
			k.size += len(text)
		}
	}
	if owner == learned {
		s.expire(now)
	}
	if err := s.room(owner, k.size); err != nil {
		return err
	}
	if s.values[value] == nil {
		s.table = nil
	} else { // a token that is kept from now on
		s.take(k, -1)
	}
	k.owner, k.told = owner, now
	s.values[value] = k
	s.take(k, 1)
	s.known.Store(int64(len(s.values)))
	return nil
}

// take counts a value in or out. The lock is held.
func (s *Scrubber) take(k *known, sign int) {
	has := s.shares[k.owner]
	has.count += sign
	has.size += sign * k.size
	s.shares[k.owner] = has
	if k.owner != learned {
		s.count += sign
		s.size += sign * k.size
	}
}

// room returns why an owner gets no more. The lock is held.
func (s *Scrubber) room(owner string, size int) error {
	has := s.shares[owner]
	full := func(what, next string) error {
		return plugin.Errorf(plugin.CodeLimitExceeded, "%s; a secret that the host could not take out of what is said and written afterwards is not given out; %s", what, next)
	}
	switch {
	case owner == learned && (has.count >= maxLearned || has.size+size > maxLearnedSpelled):
		return full("the host knows as many tokens of the last day as it can hide", "wait, or start it again")
	case owner == learned:
		return nil
	case owner != "" && (has.count >= maxOwned || has.size+size > maxOwnedSpelled):
		return full("this plugin has used as many secrets as the host hides for one", "let it use fewer or smaller ones, and start the host again")
	case s.count >= maxKnown || s.size+size > maxSpelled:
		return full("the host knows as many secrets as it can hide", "start it again; it then knows those that are used from then on")
	}
	return nil
}

// expire forgets tokens that were last told of a day ago, once their space is
// nearly full. The lock is held.
func (s *Scrubber) expire(now time.Time) {
	if has := s.shares[learned]; has.count < maxLearned-1 && has.size < maxLearnedSpelled/2 {
		return
	}
	for value, k := range s.values {
		if k.owner == learned && now.Sub(k.told) > learnedFor {
			s.take(k, -1)
			delete(s.values, value)
			s.table = nil
		}
	}
}

// idle reports whether there is nothing to look for.
func (s *Scrubber) idle() bool { return s == nil || s.known.Load() == 0 && !s.all.Load() }

func (s *Scrubber) spelled() *table {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		s.table = newTable(s.values)
	}
	return s.table
}

// within returns the values that are in data, in whichever spelling, also where
// that is JSON and they are escaped in it.
func (s *Scrubber) within(data []byte) (values []string) {
	if s.idle() || len(data) < shortest {
		return nil
	}
	if !s.spelled().in(data) && string(s.JSON(data)) == string(data) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(data)
	for _, k := range s.values {
		if slices.ContainsFunc(k.spellings, func(spelling string) bool { return strings.Contains(text, spelling) }) {
			values = append(values, k.value)
		}
	}
	if values == nil { // spelled as no single one is: all that may be meant
		for _, k := range s.values {
			values = append(values, k.value)
		}
	}
	slices.Sort(values)
	return values
}

// Text returns text without secrets.
func (s *Scrubber) Text(text string) string {
	if s.idle() || len(text) < shortest {
		return text
	}
	if s.all.Load() {
		return Mark
	}
	t := s.spelled()
	if !t.in([]byte(text)) {
		return text
	}
	out, _ := t.scrub([]byte(text), len(text), 0)
	return string(out)
}

// Open returns how many bytes at the end of text may be the beginning of a secret
// that goes on in what comes next.
func (s *Scrubber) Open(text string) int {
	if s.idle() {
		return 0
	}
	return s.spelled().open([]byte(text))
}

// JSON returns a JSON value without secrets, which is JSON still. A number that
// is a secret becomes a string; what is no JSON is scrubbed as text.
func (s *Scrubber) JSON(raw json.RawMessage) json.RawMessage {
	if s.idle() || len(raw) < shortest {
		return raw
	}
	if s.all.Load() {
		return json.RawMessage(`"` + Mark + `"`)
	}
	// A text of many small values becomes one string each on the way.
	var out []byte
	var changed bool
	var err error
	if budget.Do(min(5*len(raw), budget.Capacity), func() error { out, changed, err = s.rewrite(raw); return nil }) != nil {
		return json.RawMessage(`"` + Mark + `"`) // it never weighs that much
	}
	switch {
	case err != nil:
		return json.RawMessage(s.Text(string(raw)))
	case !changed:
		return raw
	}
	return out
}

// rewrite goes through a JSON value token by token, so that it makes no
// difference how its strings are escaped.
func (s *Scrubber) rewrite(raw []byte) (out []byte, changed bool, err error) {
	lax := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), lax...)
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf, append(lax, jsontext.EscapeForHTML(false))...)
	for {
		switch dec.PeekKind() {
		case '"', '0':
			value, err := dec.ReadValue()
			if err != nil {
				return nil, false, err
			}
			text := string(value)
			if value.Kind() == '"' {
				unquoted, err := jsontext.AppendUnquote(nil, value)
				if err != nil {
					return nil, false, err
				}
				text = string(unquoted)
			}
			clean := s.Text(text)
			if clean == text {
				err = enc.WriteValue(value)
			} else {
				changed = true
				err = enc.WriteToken(jsontext.String(clean))
			}
			if err != nil {
				return nil, false, err
			}
		default:
			token, err := dec.ReadToken()
			if err != nil {
				if buf.Len() > 0 && dec.InputOffset() >= int64(len(bytes.TrimRight(raw, " \t\r\n"))) {
					return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), changed, nil
				}
				return nil, false, err
			}
			if err := enc.WriteToken(token); err != nil {
				return nil, false, err
			}
		}
	}
}

// A table is the spellings of all values, to be found by their first 8 bytes.
type table struct {
	likely [1 << 10]uint64 // a bit for each 16-bit hash of a beginning
	begin  map[uint64][]string
	sorted []string
	most   int // bytes of the longest
}

func newTable(values map[string]*known) *table {
	t := &table{begin: map[uint64][]string{}}
	for _, k := range values {
		for _, text := range k.spellings {
			first := binary.LittleEndian.Uint64([]byte(text))
			h := hash(first)
			t.likely[h>>6] |= 1 << (h & 63)
			t.begin[first] = append(t.begin[first], text)
			t.most = max(t.most, len(text))
			t.sorted = append(t.sorted, text)
		}
	}
	slices.Sort(t.sorted)
	return t
}

func hash(first uint64) uint64 { return (first * 0x9E3779B97F4A7C15) >> 48 }

// at returns the length of the longest secret that begins at text[i], 0 for
// none.
func (t *table) at(text []byte, i int) (n int) {
	if i+shortest > len(text) {
		return 0
	}
	for _, spelling := range t.beginning(text[i:]) {
		if len(spelling) > n && len(spelling) <= len(text)-i && string(text[i:i+len(spelling)]) == spelling {
			n = len(spelling)
		}
	}
	return n
}

// in reports whether a secret is in text.
func (t *table) in(text []byte) bool {
	for i := range text {
		if t.at(text, i) > 0 {
			return true
		}
	}
	return false
}

// scrub returns text[:upto] without the secrets that begin there. covered is how
// many of the first bytes belong to one whose mark was written before; rest is
// how many bytes from upto on belong to one whose mark is written.
func (t *table) scrub(text []byte, upto, covered int) (out []byte, rest int) {
	end := covered // of the secrets that were found so far
	marked := covered > 0
	for i := range upto {
		if n := t.at(text, i); n > 0 {
			if i >= end {
				marked = false
			}
			end = max(end, i+n)
		}
		switch {
		case i >= end:
			out = append(out, text[i])
			marked = false
		case !marked:
			out = append(out, Mark...)
			marked = true
		}
	}
	return out, max(0, end-upto)
}

// open returns the length of the longest end of text that a secret may begin
// with.
func (t *table) open(text []byte) int {
	for n := min(len(text), t.most-1); n > 0; n-- {
		end := text[len(text)-n:]
		for _, spelling := range t.beginning(end) {
			if len(spelling) > n && strings.HasPrefix(spelling, string(end)) {
				return n
			}
		}
	}
	return 0
}

// beginning returns spellings among which are all that begin with text.
func (t *table) beginning(text []byte) []string {
	if len(text) < shortest {
		i := sort.SearchStrings(t.sorted, string(text)) // all are longer
		return t.sorted[i:min(i+1, len(t.sorted))]
	}
	first := binary.LittleEndian.Uint64(text)
	if h := hash(first); t.likely[h>>6]&(1<<(h&63)) == 0 {
		return nil
	}
	return t.begin[first]
}
