package terminal

import (
	"io"
	"strings"
)

// A Table is written in columns, once all of its rows are known.
type Table struct {
	Fit int // the last column is cut so that a line keeps within this many cells; 0 for any length

	w    io.Writer
	rows [][]string
}

// NewTable returns a table with titles.
func NewTable(w io.Writer, titles ...string) *Table {
	t := Details(w)
	t.Row(titles...)
	return t
}

// Details returns a table without titles: a name and a value on each line.
func Details(w io.Writer) *Table { return &Table{w: w} }

// Row adds a line.
func (t *Table) Row(columns ...string) {
	for i := range columns {
		columns[i] = strings.ReplaceAll(Safe(columns[i]), "\t", " ")
	}
	t.rows = append(t.rows, columns)
}

// Some adds a line of a name and its values, unless there are none.
func (t *Table) Some(name string, values ...string) {
	if text := strings.Join(values, ", "); text != "" {
		t.Row(name, text)
	}
}

// Flush writes the table.
func (t *Table) Flush() error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Cells(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := ""
		for i, cell := range row {
			if t.Fit > 0 && i == len(widths)-1 {
				cell = OneLine(cell, max(10, t.Fit-Cells(line)))
			}
			line += Padded(cell, widths[i]) + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}
