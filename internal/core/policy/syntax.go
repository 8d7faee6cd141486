package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"
)

var (
	place  = regexp.MustCompile(`<input>:(\d+):(\d+)`) // how the parser writes one
	exact  = regexp.MustCompile(`^exact got (.*) want (.+)$`)
	effect = regexp.MustCompile(`^unexpected effect: (.*)$`)
	want   = regexp.MustCompile(`^got (.*) want ,$`)
)

// syntax turns the parser's error into a problem.
func syntax(name, text string, tokens []token, err error) Problem {
	message := strings.TrimPrefix(err.Error(), "parser error: ")
	m := place.FindStringSubmatch(message)
	if m == nil {
		if strings.HasPrefix(message, "strconv.") {
			message = "the number is out of range: there are whole numbers from -9223372036854775808 to 9223372036854775807"
		}
		return at(name, text, unreadable(tokens), message)
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	what := message[strings.Index(message, m[0])+len(m[0]):]
	if _, rest, found := strings.Cut(what, `": `); found {
		what = rest
	}
	what = strings.TrimPrefix(what, ": ")
	offset := offsetOf(text, line, column)
	offset = before(tokens, offset, back(what, offset >= len(strings.TrimRight(text, " \t\r\n"))))
	return at(name, text, offset, plain(what))
}

// back returns how many tokens the parser has gone past the one it complains
// of when it names its place.
func back(what string, end bool) int {
	switch {
	case strings.HasPrefix(what, "exact got  want"): // the text is at its end
		return 0
	case strings.HasPrefix(what, "exact got "), strings.HasPrefix(what, "unexpected effect: "):
		return 1
	case end:
		return 0
	case strings.HasSuffix(what, "function"), strings.HasSuffix(what, "method"):
		return 2
	case strings.HasPrefix(what, "expected ident"), strings.HasPrefix(what, "expected string"), what == "unexpected token", what == "invalid primary":
		return 1
	}
	return 0
}

// before returns the offset of the token n before the one at offset.
func before(tokens []token, offset, n int) int {
	i := 0
	for i < len(tokens) && tokens[i].offset < offset {
		i++
	}
	if n == 0 || i-n < 0 || i-n >= len(tokens) {
		return offset
	}
	return tokens[i-n].offset
}

// unreadable returns the offset of the first string or number that cannot be
// read: the parser does not say where it is.
func unreadable(tokens []token) int {
	for i, t := range tokens {
		if t.text[0] != '"' && (t.text[0] < '0' || t.text[0] > '9') {
			continue
		}
		expression := "0 == " + t.text
		switch {
		case i > 0 && tokens[i-1].text == "like":
			expression = `"" like ` + t.text
		case i > 0 && tokens[i-1].text == "-":
			expression = "0 == -" + t.text
		}
		if _, err := cedar.NewPolicyListFromBytes("", []byte("permit (principal, action, resource) when { "+expression+" };")); err != nil {
			return t.offset
		}
	}
	return 0
}

// plain puts the parser's words into ours.
func plain(what string) string {
	if m := exact.FindStringSubmatch(what); m != nil {
		return fmt.Sprintf("found %s where %s is expected", shown(m[1]), m[2])
	}
	if m := want.FindStringSubmatch(what); m != nil {
		return fmt.Sprintf("found %s where a comma or the end of the list is expected", shown(m[1]))
	}
	if m := effect.FindStringSubmatch(what); m != nil {
		return fmt.Sprintf("found %s where a policy, permit or forbid, is expected", shown(m[1]))
	}
	if what == "invalid primary" {
		return "a value is expected: principal, action, resource, context, or a literal"
	}
	return what
}

// shown returns a token as a problem shows it.
func shown(token string) string {
	if token == "" {
		return "the end"
	}
	return token
}
