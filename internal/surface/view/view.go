// Package view writes the nouns of the host for people: tables, details and messages.
//
// A function takes plain values and where they are written: w is for what was asked for,
// errs for all else. Nothing that came from a plugin reaches either of them unescaped.
package view

import (
	"fmt"
	"io"
	"strconv"

	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// A List is how the rows of a noun are shown.
type List[T any] struct {
	Key    string   // of the rows in a JSON object
	Titles []string // of the table
	None   string   // what is said where there are no rows; a table of titles alone if empty
	Fit    Fit
	Row    func(T) []string // the cells of a row
}

// A Fit says whether the last column of a list gives way to the width of the screen.
type Fit int

// The fits.
const (
	Whole    Fit = iota // the table is as wide as it is
	Always              // 120 cells where there is no terminal
	OnScreen            // on a terminal alone
)

// Table writes rows below the titles.
func (l List[T]) Table(w io.Writer, rows []T) error {
	t := fitted(w, l.Fit, l.Titles...)
	for _, row := range rows {
		t.Row(l.Row(row)...)
	}
	return t.Flush()
}

// below writes rows under what stands there already, if there are any.
func (l List[T]) below(w io.Writer, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return l.Table(w, rows)
}

// fitted returns a table that keeps within the width of the screen, if it is to.
func fitted(w io.Writer, f Fit, titles ...string) *terminal.Table {
	t := terminal.Details(w)
	if len(titles) > 0 {
		t.Row(titles...)
	}
	if f == Always || f == OnScreen && terminal.Is(w) {
		t.Fit = width(w)
	}
	return t
}

// width returns how many characters fit on a line.
func width(w io.Writer) int { return max(40, terminal.Width(w, 120)) }

// Say writes a line.
func Say(errs io.Writer, format string, args ...any) {
	fmt.Fprintln(errs, terminal.Safe(fmt.Sprintf(format, args...)))
}

// inBrackets is what is added to a state, if there is anything.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// count is a whole number in a column.
func count(n int64) string { return strconv.FormatInt(n, 10) }
