package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of pages.
const (
	usualPage = 50
	mostPage  = 200
)

// Short lets an id be cut short, as at the command line.
type Short struct {
	Short bool `query:"short" doc:"The id may be cut short to its beginning, or to its end, of at least six characters."`
}

// A Page is which part of a list is asked for.
type Page struct {
	Size  int    `query:"page_size" doc:"How many at most; what is out of 1 to 200 is taken for the nearest of them." default:"50"`
	Token string `query:"page_token" maxLength:"256" doc:"next_page_token of the page before, with the same filters."`
}

// size returns how many are on a page.
func (p Page) size() int { return max(1, min(p.Size, mostPage)) }

// after returns where the page begins, "" at the beginning. of are the list and its
// filters: the token of another list is refused.
func (p Page) after(of ...string) (string, error) {
	if p.Token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Token)
	mark, last, found := strings.Cut(string(raw), " ")
	if err != nil || !found || mark != markOf(of) || last == "" {
		return "", refused(0, plugin.CodeInvalidInput, "the token of the page is not one of this list with these filters", Place{Pointer: "page_token", Detail: "it is not one of this list with these filters"})
	}
	return last, nil
}

// next returns the token of the page after last.
func next(last string, of ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(markOf(of) + " " + last))
}

// markOf tells lists and their filters apart.
func markOf(of []string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// cut returns the rows of a page, of which one more was asked for, and the token of the
// next: "" if there is none. The list goes on after rest, if that is not empty, although it has no
// more rows.
func cut[T any](rows []T, size int, rest string, id func(*T) string, of ...string) ([]T, string) {
	if len(rows) > size {
		return rows[:size], next(id(&rows[size-1]), of...)
	}
	if rest != "" {
		return rows, next(rest, of...)
	}
	return rows, ""
}
