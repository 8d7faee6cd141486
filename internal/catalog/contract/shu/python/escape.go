package python

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// escapes are the characters that stand for one other behind a backslash.
var escapes = map[byte]byte{
	'\\': '\\', '\'': '\'', '"': '"', 'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

// unescape writes what a text or bytes literal stands for.
func (s *source) unescape(b *strings.Builder, t token) *Error {
	written := lineEnds.Replace(t.text)
	if t.bytes {
		for i := range len(written) {
			if written[i] >= utf8.RuneSelf {
				return s.wrong(t.at, "bytes hold ASCII characters only")
			}
		}
	}
	if t.raw {
		b.WriteString(written)
		return nil
	}
	for written != "" {
		i := strings.IndexByte(written, '\\')
		if i < 0 || i == len(written)-1 {
			b.WriteString(written)
			return nil
		}
		b.WriteString(written[:i])
		rest, err := s.escape(b, t, written[i+1:])
		if err != nil {
			return err
		}
		written = rest
	}
	return nil
}

// lineEnds makes every line end alike, as Python does.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// escape writes what one escape stands for, and returns what follows it.
func (s *source) escape(b *strings.Builder, t token, rest string) (string, *Error) {
	c := rest[0]
	if plain, simple := escapes[c]; simple {
		b.WriteByte(plain)
		return rest[1:], nil
	}
	digits, base := 0, 16
	switch {
	case c == '\n':
		return rest[1:], nil
	case c >= '0' && c <= '7':
		base = 8
		for digits < 3 && digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '7' {
			digits++
		}
		return s.character(b, t, rest[:digits], base, rest[digits:])
	case c == 'x':
		digits = 2
	case c == 'u' && !t.bytes:
		digits = 4
	case c == 'U' && !t.bytes:
		digits = 8
	case c == 'N' && !t.bytes:
		return "", s.wrong(t.at, `\N{...} is not read here: write the character itself`)
	default: // no escape: the backslash stands for itself
		b.WriteByte('\\')
		return rest, nil
	}
	if len(rest) < 1+digits {
		return "", s.wrong(t.at, `the escape \%s is too short`, rest)
	}
	return s.character(b, t, rest[1:1+digits], base, rest[1+digits:])
}

// character writes the character of a number, and returns rest.
func (s *source) character(b *strings.Builder, t token, digits string, base int, rest string) (string, *Error) {
	n, err := strconv.ParseUint(digits, base, 32)
	switch {
	case err != nil:
		return "", s.wrong(t.at, "%s in an escape is no number", clip(digits))
	case t.bytes:
		b.WriteByte(byte(n))
	case n > utf8.MaxRune || !utf8.ValidRune(rune(n)):
		return "", s.wrong(t.at, "the escape of %s is no character of its own", clip(digits))
	default:
		b.WriteRune(rune(n))
	}
	return rest, nil
}
