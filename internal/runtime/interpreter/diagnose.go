package interpreter

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// The bounds of what is told about a build that failed.
const (
	shownErrors = 3
	shownLine   = 120 // characters of a source line
)

// diagnose says why a bundle could not be made, for the plugin's author.
func diagnose(s source, messages []api.Message) error {
	if missing := missingPackages(messages); len(missing) > 0 {
		names := strings.Join(missing, " ")
		return plugin.Errorf(plugin.CodeDependencyMissing, "%s needs what is not installed: run npm install %s in %s\n%s",
			s.entry, clip(names, 400), s.pkg.Dir, place(messages[0]))
	}
	var lines []string
	for _, message := range messages[:min(len(messages), shownErrors)] {
		lines = append(lines, place(message))
	}
	if more := len(messages) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return failed("%s cannot be built\n%s", s.entry, strings.Join(lines, "\n"))
}

// missingPackages returns the packages that are not installed, none if that is
// not all that is wrong.
func missingPackages(messages []api.Message) []string {
	var missing []string
	for _, message := range messages {
		name := missingPackage(message.Text)
		if name == "" {
			return nil
		}
		if !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

var unresolved = pattern.New(`^Could not resolve "([^"]+)"`)

// missingPackage returns the package that an import names, "" if the message
// says something else.
func missingPackage(text string) string {
	match := unresolved.FindStringSubmatch(text)
	if match == nil || strings.ContainsAny(match[1][:1], "./#") || strings.Contains(match[1], ":") {
		return ""
	}
	parts := strings.SplitN(match[1], "/", 3)
	if strings.HasPrefix(parts[0], "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// place shows a message with the line it is about:
//
//	plugin.ts:3:11: Expected ";" but found "="
//	  const a == 1;
//	          ^
func place(message api.Message) string {
	text := clip(message.Text, 400)
	at := message.Location
	if at == nil {
		return text
	}
	before := at.LineText[:min(at.Column, len(at.LineText))]
	column := utf8.RuneCountInString(before)
	line := []rune(strings.Map(plain, at.LineText))
	caret := column
	if start := column - shownLine/2; len(line) > shownLine && start > 0 { // a window around the column
		line, caret = line[min(start, len(line)):], column-start
	}
	if len(line) > shownLine {
		line = line[:shownLine]
	}
	return fmt.Sprintf("%s:%d:%d: %s\n  %s\n  %s^", at.File, at.Line, column+1, text, string(line), strings.Repeat(" ", caret))
}

// plain keeps a line one line, and its columns where they are.
func plain(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}
