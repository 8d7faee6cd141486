package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// story tells what went wrong with the code of a plugin in dir: the message, the
// line that it is about, and the functions that it was reached by.
func story(dir string, err error) string {
	text := messageOf(err)
	var failed *plugin.Error
	for at := err; errors.As(at, &failed); at = failed.Err { // the innermost knows
		var details struct {
			Stack string `json:"stack"`
		}
		if json.Unmarshal(failed.Details, &details) == nil && details.Stack != "" {
			return text + frame(dir, details.Stack) + "\n  " + strings.ReplaceAll(details.Stack, "\n", "\n  ")
		}
	}
	return text
}

// place is where a line of a stack says that it is.
var place = pattern.New(`([^\s():]+):(\d+):(\d+)\)?$`)

// Bounds of a line of code that is shown.
const (
	maxSource = 1 << 20
	maxColumn = 120
)

// frame shows the line of code that a stack begins with, and the place in it:
//
//	index.ts:4:10
//	  rules.find(e.toolName)
//	  ^
//
// It is empty where the file is not to be found.
func frame(dir, stack string) string {
	first, _, _ := strings.Cut(stack, "\n")
	m := place.FindStringSubmatch(first)
	if m == nil || !filepath.IsLocal(filepath.FromSlash(m[1])) {
		return ""
	}
	source, err := read(dir, m[1])
	if err != nil || len(source) > maxSource {
		return ""
	}
	number, _ := strconv.Atoi(m[2])
	column, _ := strconv.Atoi(m[3])
	lines := strings.Split(string(source), "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	line := []rune(strings.Map(plain, lines[number-1]))
	indent := 0
	for indent < len(line) && line[indent] == ' ' {
		indent++
	}
	line, column = line[indent:], column-1-indent
	if column < 0 || column >= maxColumn {
		return fmt.Sprintf("\n  %s", string(line[:min(len(line), maxColumn)]))
	}
	return fmt.Sprintf("\n  %s\n  %s^", string(line[:min(len(line), maxColumn)]), strings.Repeat(" ", column))
}

// plain keeps a line one line, and its columns where they are.
func plain(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}
