package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// plain is text on one line without characters that steer a terminal, hide or turn others.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// A markdown is a page in CommonMark, without raw HTML and links of its texts.
type markdown struct{ b bytes.Buffer }

// marks are the characters that can mean something within a line, and what would make a
// link of a bare address.
var marks = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "|", `\|`,
	"#", `\#`, "~", `\~`, "!", `\!`, "$", `\$`, "@", `\@`, "://", `\://`, "www.", `www\.`, "WWW.", `WWW\.`, "{", `\{`, "}", `\}`)

func (m *markdown) text(text string) string { return marks.Replace(strings.TrimSpace(plain(text))) }

func (m *markdown) begin(title string) { fmt.Fprintf(&m.b, "# %s\n", m.text(title)) }

func (m *markdown) heading(level int, text string) {
	fmt.Fprintf(&m.b, "\n%s %s\n\n", strings.Repeat("#", level), m.text(text))
}

func (m *markdown) paragraph(text string) { fmt.Fprintf(&m.b, "\n%s\n", m.first(text)) }

func (m *markdown) item(text string, beneath ...string) {
	fmt.Fprintf(&m.b, "- %s\n", m.first(text))
	for _, line := range beneath {
		fmt.Fprintf(&m.b, "  - %s\n", m.first(line))
	}
}

// first is text that begins a block: no mark of a list, a heading or a rule may.
func (m *markdown) first(text string) string {
	text = m.text(text)
	if digits := strings.TrimLeft(text, "0123456789"); digits != "" && strings.ContainsAny(digits[:1], ".)") && digits != text {
		return text[:len(text)-len(digits)] + `\` + digits
	}
	if text != "" && strings.ContainsAny(text[:1], "-+=") {
		return `\` + text
	}
	return text
}

func (m *markdown) end(data string) { fmt.Fprintf(&m.b, "\n```json\n%s\n```\n", data) }

func (m *markdown) bytes() []byte { return m.b.Bytes() }
