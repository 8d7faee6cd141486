package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A sourceMap finds the place in a plugin's files that a place of the bundle was
// made from.
type sourceMap struct {
	files []string
	lines [][]mapping // by line of the bundle, from 0
}

// A mapping is one place of the bundle and where it comes from, all from 0.
type mapping struct{ column, file, line, sourceColumn int }

// readMap reads a source map of version 3.
func readMap(data []byte) (*sourceMap, error) {
	var raw struct {
		Sources  []string `json:"sources"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("reading a source map: %w", err)
	}
	m := &sourceMap{files: raw.Sources}
	var at mapping // fields are written as differences to the mapping before
	for line := range strings.SplitSeq(raw.Mappings, ";") {
		at.column = 0
		var mappings []mapping
		for segment := range strings.SplitSeq(line, ",") {
			fields, err := readVLQ(segment)
			if err != nil {
				return nil, err
			}
			if len(fields) > 0 {
				at.column += fields[0]
			}
			if len(fields) < 4 {
				continue // comes from nowhere
			}
			at.file, at.line, at.sourceColumn = at.file+fields[1], at.line+fields[2], at.sourceColumn+fields[3]
			if at.file < 0 || at.file >= len(m.files) {
				return nil, fmt.Errorf("a source map names file %d of %d", at.file, len(m.files))
			}
			mappings = append(mappings, at)
		}
		m.lines = append(m.lines, mappings)
	}
	return m, nil
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// readVLQ reads numbers written as base 64 digits of five bits each, the sign in
// the lowest bit of a number and the end of it in the highest of its last digit.
func readVLQ(text string) ([]int, error) {
	var numbers []int
	n, shift := 0, 0
	for _, c := range []byte(text) {
		digit := strings.IndexByte(base64Digits, c)
		if digit < 0 || shift > 30 {
			return nil, fmt.Errorf("a source map has %q where a number should be", text)
		}
		n |= digit & 31 << shift
		if shift += 5; digit&32 != 0 {
			continue
		}
		if n&1 != 0 {
			n = -n
		}
		numbers = append(numbers, n/2)
		n, shift = 0, 0
	}
	return numbers, nil
}

// place returns file:line:column of a place of the bundle, "" for one that comes
// from nowhere. Lines and columns are from 1.
func (m *sourceMap) place(line, column int) string {
	if m == nil || line < 1 || line > len(m.lines) {
		return ""
	}
	mappings := m.lines[line-1]
	i, exact := slices.BinarySearchFunc(mappings, column-1, func(a mapping, column int) int { return a.column - column })
	if !exact {
		i--
	}
	if i < 0 {
		return ""
	}
	from := mappings[i]
	return fmt.Sprintf("%s:%d:%d", m.files[from.file], from.line+1, from.sourceColumn+1)
}

var bundlePlace = pattern.New(regexp.QuoteMeta(programFile) + `:(\d+):(\d+)`)

// stack rewrites a stack of the engine to places in the plugin's files, and
// leaves out the host's own.
func (m *sourceMap) stack(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if strings.Contains(line, preludeFile) || strings.Contains(line, "(native)") || line == "" {
			continue
		}
		lines = append(lines, bundlePlace.ReplaceAllStringFunc(strings.TrimSpace(line), func(found string) string {
			match := bundlePlace.FindStringSubmatch(found)
			row, _ := strconv.Atoi(match[1])
			column, _ := strconv.Atoi(match[2])
			if place := m.place(row, column); place != "" {
				return place
			}
			return "generated code"
		}))
	}
	return strings.Join(lines, "\n")
}

var firstPlace = pattern.New(`\(([^()]+:\d+:\d+)\)`)

// top returns the first place of a stack that was rewritten, "" if it has none.
func top(stack string) string {
	if match := firstPlace.FindStringSubmatch(stack); match != nil {
		return match[1]
	}
	return ""
}
