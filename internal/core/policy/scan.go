package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A token is a word, a string, a number or a sign of a policy's text.
type token struct {
	text   string
	offset int
}

// What a text of policies may hold at most. The parser and what it builds are
// recursive, so that depth is stack.
const (
	maxTokens  = 10_000 // of one policy
	maxNesting = 64     // of brackets, and of if
	maxChain   = 32     // of a.b.c: what comes of it is quadratic
)

// scan cuts text into tokens, without what is said in comments. It does not
// judge: what is no Cedar becomes tokens that the parser refuses.
func scan(text string) []token {
	var tokens []token
	for at := 0; at < len(text); {
		end := at + 1
		switch c := text[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
			continue
		case strings.HasPrefix(text[at:], "//"):
			if end = strings.IndexByte(text[at:], '\n'); end < 0 {
				return tokens
			}
			at += end
			continue
		case c == '"':
			for end < len(text) && text[end] != '"' && text[end] != '\n' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
		case word(c):
			for end < len(text) && word(text[end]) {
				end++
			}
		case end < len(text) && slices.Contains(signs, text[at:end+1]):
			end++
		}
		tokens = append(tokens, token{text[at:end], at})
		at = end
	}
	return tokens
}

// signs are those of two characters.
var signs = []string{"::", "==", "!=", "<=", ">=", "&&", "||"}

func word(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// bounded refuses a text that is not for a recursive parser.
func bounded(name, text string, tokens []token) Problems {
	depth, length, dots := 0, 0, 0
	for i, t := range tokens {
		length++
		switch {
		case t.text == ".":
			dots++
		case i == 0 || tokens[i-1].text != ".":
			dots = 0
		}
		switch t.text {
		case "(", "[", "{", "if":
			depth++
		case ")", "]", "}":
			depth = max(depth-1, 0)
		case ";":
			depth, length = 0, 0
		}
		switch {
		case dots > maxChain:
			return Problems{at(name, text, t.offset, fmt.Sprintf("more than %d attributes one of the other", maxChain))}
		case depth > maxNesting:
			return Problems{at(name, text, t.offset, fmt.Sprintf("nested deeper than %d", maxNesting))}
		case length > maxTokens:
			return Problems{at(name, text, t.offset, fmt.Sprintf("the policy has more than %d words and signs", maxTokens))}
		}
	}
	return nil
}

// at returns a problem with its place in the text of a document.
func at(name, text string, offset int, message string) Problem {
	offset = min(offset, len(text))
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return Problem{File: name, Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[start:]) + 1, Message: message}
}

// offsetOf returns where line and column are in text.
func offsetOf(text string, line, column int) int {
	offset := 0
	for range line - 1 {
		next := strings.IndexByte(text[offset:], '\n')
		if next < 0 {
			return len(text)
		}
		offset += next + 1
	}
	for range column - 1 {
		_, size := utf8.DecodeRuneInString(text[offset:])
		offset += size
	}
	return offset
}

// A Problem is one thing that is wrong with a policy, and where.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Policy  string `json:"policy,omitempty"` // its name, where the text could be read so far
	Message string `json:"message"`
}

// Error returns file:line:column, the policy and the message.
func (p Problem) Error() string {
	message := p.Message
	if p.Policy != "" {
		message = p.Policy + ": " + message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, message)
}

// Problems are all that is wrong with a set of policies, by file and place.
type Problems []Problem

// Error returns a line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}
