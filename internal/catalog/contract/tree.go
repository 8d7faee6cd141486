package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mortise-dev/mortise/internal/base/canon"
)

// The bounds of what a manifest may be.
const (
	MaxBytes = 1 << 20
	MaxDepth = 64
	maxNodes = 100_000 // after aliases are written out
)

// A manifest of any format is read into one tree of nil, bool, number,
// string, []any and *Mapping.

// A Number is a JSON number as it was written.
type Number string

// A Mapping keeps its keys in the order they were written.
type Mapping struct {
	Keys   []string
	Values map[string]any
}

// Set adds a key; it reports false if there is one of that name already.
func (m *Mapping) Set(key string, value any) bool {
	if _, there := m.Values[key]; there {
		return false
	}
	if m.Values == nil {
		m.Values = map[string]any{}
	}
	m.Keys = append(m.Keys, key)
	m.Values[key] = value
	return true
}

// parse reads a manifest's bytes by the format its file name says.
func parse(file string, data []byte) (any, Problems) {
	switch {
	case len(data) > MaxBytes:
		return nil, Whole(file, fmt.Sprintf("it is longer than %d bytes", MaxBytes))
	case !utf8.Valid(data):
		return nil, Whole(file, "it is not UTF-8 text")
	case len(bytes.TrimSpace(data)) == 0:
		return nil, Whole(file, "it is empty")
	case nestsTooDeep(data):
		return nil, Whole(file, fmt.Sprintf("it nests deeper than %d levels", MaxDepth))
	case !strings.HasSuffix(file, ".json") && bytes.Count(data, []byte(","))+bytes.Count(data, []byte("\n")) > maxNodes:
		return nil, Whole(file, errTooMany.Error())
	}
	if owner := ownerOf(file); owner != nil {
		return owner.Parse(file, data)
	}
	if strings.HasSuffix(file, ".json") {
		tree, err := ParseJSON(data)
		if err != nil {
			return nil, Problems{{File: file, Pointer: syntaxAt(err), Reason: syntaxReason(err)}}
		}
		return tree, nil
	}
	return parseYAML(file, data)
}

// maxOpen is how many brackets may be open, or dashes stand in a row, before a
// parser is asked, whose memory grows with them. Text that is quoted counts too.
const maxOpen = 1000

// nestsTooDeep reports whether a manifest nests, or seems to nest, beyond all reason.
func nestsTooDeep(data []byte) bool {
	open, dashes := 0, 0
	for _, c := range data {
		switch c {
		case '[', '{', '(':
			open++
		case ']', '}', ')':
			open = max(0, open-1)
		case '-', '?', ':':
			dashes++
		}
		if c != '-' && c != '?' && c != ':' && c != ' ' {
			dashes = 0
		}
		if open > maxOpen || dashes > maxOpen {
			return true
		}
	}
	return false
}

// ParseJSON reads one strict I-JSON value.
func ParseJSON(data []byte) (any, error) {
	if err := canon.Check(data, MaxDepth); err != nil {
		return nil, err
	}
	left := maxNodes
	return readJSON(jsontext.NewDecoder(bytes.NewReader(data)), &left)
}

// syntaxAt and syntaxReason say where JSON is wrong, and how.
func syntaxAt(err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return string(syntax.JSONPointer)
	}
	return ""
}

func syntaxReason(err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return err.Error()
	}
	if errors.Is(syntax.Err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return syntax.Err.Error()
}

// PlainSyntax returns both in one line.
func PlainSyntax(err error) error {
	if at := syntaxAt(err); at != "" {
		return fmt.Errorf("at %s: %s", at, syntaxReason(err))
	}
	return errors.New(syntaxReason(err))
}

func readJSON(dec *jsontext.Decoder, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, errTooMany
	}
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		return Number(token.String()), nil
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			item, err := readJSON(dec, left)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := dec.ReadToken()
		return list, err
	default: // '{': canon.Check has seen that the grammar holds
		m := &Mapping{}
		for dec.PeekKind() != '}' {
			key, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String() // the token is void after the next read
			item, err := readJSON(dec, left)
			if err != nil {
				return nil, err
			}
			m.Set(name, item)
		}
		_, err := dec.ReadToken()
		return m, err
	}
}

var errTooMany = fmt.Errorf("it holds more than %d values", maxNodes)

// ToJSON writes a tree as JSON, the keys in the order they were written.
func ToJSON(tree any) []byte {
	var b bytes.Buffer
	writeJSON(&b, tree)
	return b.Bytes()
}

func writeJSON(b *bytes.Buffer, tree any) {
	switch v := tree.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case Number:
		b.WriteString(string(v))
	case string:
		writeString(b, v)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case *Mapping:
		b.WriteByte('{')
		for i, key := range v.Keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, key)
			b.WriteByte(':')
			writeJSON(b, v.Values[key])
		}
		b.WriteByte('}')
	}
}

func writeString(b *bytes.Buffer, s string) {
	quoted, _ := jsontext.AppendQuote(nil, s) // cannot fail: all text here is valid UTF-8
	b.Write(quoted)
}

// Child returns the JSON pointer of key beneath pointer.
func Child(pointer, key string) string {
	if strings.ContainsAny(key, "~/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	}
	return pointer + "/" + key
}
