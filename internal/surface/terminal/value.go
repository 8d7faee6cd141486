package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// Value shows any JSON value to a person: text as it is, the members of
// an object line by line, a list of objects as a table.
func Value(w io.Writer, raw jsontext.Value, width int) error {
	switch raw.Kind() {
	case '{':
		return Object(w, raw, width, "")
	case '[':
		return renderList(w, raw, width, "")
	case 'n':
		return nil
	default:
		_, err := fmt.Fprintln(w, plain(raw))
		return err
	}
}

// Object shows the members of an object line by line.
func Object(w io.Writer, raw jsontext.Value, width int, indent string) error {
	longest := 0
	for m := protocol.ScanMembers(raw); m.Next(); {
		if isFlat(m.Value) {
			longest = max(longest, Cells(Safe(string(m.Name))))
		}
	}
	first := true
	for m := protocol.ScanMembers(raw); m.Next(); first = false {
		if err := member(w, string(m.Name), m.Value, longest, first, width, indent); err != nil {
			return err
		}
	}
	return nil
}

// member shows one member of an object; the longest label of those beside it says
// where values begin.
func member(w io.Writer, name string, value jsontext.Value, longest int, first bool, width int, indent string) error {
	label := Safe(strings.ReplaceAll(name, "_", " "))
	gap := "\n"
	if first {
		gap = ""
	}
	switch {
	case isFlat(value):
		text := plain(value)
		if strings.Contains(text, "\n") {
			_, err := fmt.Fprintf(w, "%s%s:\n%s\n", indent, label, text)
			return err
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(indent+Padded(label+":", longest+1)+"  "+text, " "))
		return err
	case value.Kind() == '{':
		if _, err := fmt.Fprintf(w, "%s%s:\n", indent, label); err != nil {
			return err
		}
		return Object(w, value, width, indent+"  ")
	default:
		if _, err := fmt.Fprintf(w, "%s%s%s:\n", gap, indent, label); err != nil {
			return err
		}
		return renderList(w, value, width, indent+"  ")
	}
}

// renderList shows a list: of objects as a table, of anything else a line each.
func renderList(w io.Writer, raw jsontext.Value, width int, indent string) error {
	var items []jsontext.Value
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	if len(items) == 0 {
		_, err := fmt.Fprintf(w, "%s(none)\n", indent)
		return err
	}
	columns, ok := columnsOf(items)
	if !ok {
		for _, item := range items {
			if _, err := fmt.Fprintf(w, "%s%s\n", indent, OneLine(compact(item), width-len(indent))); err != nil {
				return err
			}
		}
		return nil
	}
	return renderTable(w, items, columns, width, indent)
}

// columnsOf returns the members that items which are all objects have, in the
// order they come up; lists are left out, for they do not fit a cell.
func columnsOf(items []jsontext.Value) (columns []string, ok bool) {
	for _, item := range items {
		if item.Kind() != '{' {
			return nil, false
		}
		for m := protocol.ScanMembers(item); m.Next(); {
			if name := string(m.Name); m.Value.Kind() != '[' && !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	return columns, len(columns) > 0
}

// renderTable fits the cells to the width: the widest column gives way.
func renderTable(w io.Writer, items []jsontext.Value, columns []string, width int, indent string) error {
	rows := make([][]string, 0, len(items)+1)
	titles := make([]string, len(columns))
	for i, name := range columns {
		titles[i] = strings.ToUpper(OneLine(strings.ReplaceAll(name, "_", " "), 40))
	}
	rows = append(rows, titles)
	for _, item := range items {
		row := make([]string, len(columns))
		for m := protocol.ScanMembers(item); m.Next(); {
			if i := slices.Index(columns, string(m.Name)); i >= 0 {
				row[i] = OneLine(compact(m.Value), 500)
			}
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Cells(cell))
		}
	}
	for {
		total := len(indent) + 2*(len(columns)-1)
		widest := 0
		for i, n := range widths {
			total += n
			if n > widths[widest] {
				widest = i
			}
		}
		if total <= width || widths[widest] <= 24 {
			break
		}
		widths[widest] = max(24, widths[widest]-(total-width))
	}
	for _, row := range rows {
		line := indent
		for i, cell := range row {
			line += Padded(OneLine(cell, widths[i]), widths[i]) + "  "
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// isFlat reports whether a value is neither list nor object.
func isFlat(value jsontext.Value) bool { return value.Kind() != '{' && value.Kind() != '[' }

// plain returns a flat value as text. A number stays as it is spelled: it may be an amount.
func plain(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return string(value)
		}
		return Safe(string(text))
	case 'n':
		return "-"
	case 't':
		return "yes"
	case 'f':
		return "no"
	}
	return string(value)
}

// compact returns any value on one line: an object as name value pairs.
func compact(value jsontext.Value) string {
	switch value.Kind() {
	case '{':
		var parts []string
		for m := protocol.ScanMembers(value); m.Next(); {
			if isFlat(m.Value) {
				parts = append(parts, plain(m.Value))
			}
		}
		return strings.Join(parts, ":")
	case '[':
		own := value.Clone()
		_ = own.Compact()
		return string(own)
	default:
		return plain(value)
	}
}
