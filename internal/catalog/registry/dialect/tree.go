package dialect

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
	maxBytes = 1 << 20
	maxDepth = 64
	maxNodes = 100_000 // after aliases are written out
)

// A manifest of any format is read into one tree of nil, bool, number,
// string, []any and *mapping.

// A number is a JSON number as it was written.
type number string

// A mapping keeps its keys in the order they were written.
type mapping struct {
	keys   []string
	values map[string]any
}

// set adds a key; it reports false if there is one of that name already.
func (m *mapping) set(key string, value any) bool {
	if _, there := m.values[key]; there {
		return false
	}
	if m.values == nil {
		m.values = map[string]any{}
	}
	m.keys = append(m.keys, key)
	m.values[key] = value
	return true
}

// parse reads a manifest's bytes by the format its file name says.
func parse(file string, data []byte) (any, Problems) {
	switch {
	case len(data) > maxBytes:
		return nil, whole(file, fmt.Sprintf("it is longer than %d bytes", maxBytes))
	case !utf8.Valid(data):
		return nil, whole(file, "it is not UTF-8 text")
	case len(bytes.TrimSpace(data)) == 0:
		return nil, whole(file, "it is empty")
	case nestsTooDeep(data):
		return nil, whole(file, fmt.Sprintf("it nests deeper than %d levels", maxDepth))
	case !strings.HasSuffix(file, ".json") && bytes.Count(data, []byte(","))+bytes.Count(data, []byte("\n")) > maxNodes:
		return nil, whole(file, errTooMany.Error())
	}
	if strings.HasSuffix(file, ".py") {
		return parsePython(file, data)
	}
	if strings.HasSuffix(file, ".json") {
		tree, err := parseJSON(data)
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

// parseJSON reads one strict I-JSON value.
func parseJSON(data []byte) (any, error) {
	if err := canon.Check(data, maxDepth); err != nil {
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

// plainSyntax returns both in one line.
func plainSyntax(err error) error {
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
		return number(token.String()), nil
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
		m := &mapping{}
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
			m.set(name, item)
		}
		_, err := dec.ReadToken()
		return m, err
	}
}

var errTooMany = fmt.Errorf("it holds more than %d values", maxNodes)

// toJSON writes a tree as JSON, the keys in the order they were written.
func toJSON(tree any) []byte {
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
	case number:
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
	case *mapping:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, key)
			b.WriteByte(':')
			writeJSON(b, v.values[key])
		}
		b.WriteByte('}')
	}
}

func writeString(b *bytes.Buffer, s string) {
	quoted, _ := jsontext.AppendQuote(nil, s) // cannot fail: all text here is valid UTF-8
	b.Write(quoted)
}

// child returns the JSON pointer of key beneath pointer.
func child(pointer, key string) string {
	if strings.ContainsAny(key, "~/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	}
	return pointer + "/" + key
}
