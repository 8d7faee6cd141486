package script

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what is told of code that cannot be read.
const (
	shownErrors = 3
	shownLine   = 120 // characters of a line
	shownText   = 400
)

// diagnose says for the plugin's author what is wrong, and where.
func diagnose(entry string, messages []api.Message) error {
	var lines []string
	for _, message := range messages[:min(len(messages), shownErrors)] {
		lines = append(lines, placed(message))
	}
	if more := len(messages) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return plugin.Errorf(plugin.CodePluginError, "%s cannot be run\n%s", entry, strings.Join(lines, "\n"))
}

// placed shows a message with the line that it is about:
//
//	index.ts:3:11: Expected ";" but found "="
//	  const a == 1;
//	          ^
func placed(message api.Message) string {
	text := cut(message.Text, shownText)
	at := message.Location
	if at == nil {
		return text
	}
	line := []rune(strings.Map(plain, at.LineText))
	column := utf8.RuneCountInString(at.LineText[:min(at.Column, len(at.LineText))])
	caret := column
	if start := column - shownLine/2; len(line) > shownLine && start > 0 {
		line, caret = line[min(start, len(line)):], column-start
	}
	line = line[:min(len(line), shownLine)]
	return fmt.Sprintf("%s:%d:%d: %s\n  %s\n  %s^", at.File, at.Line, column+1, text, string(line), strings.Repeat(" ", caret))
}

// plain keeps a line one line, and its columns where they are.
func plain(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// cut returns at most n bytes of text, whole characters of them.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}
