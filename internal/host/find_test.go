package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

func TestAnIdIsFoundByItsBeginningOrItsEnd(t *testing.T) {
	t.Parallel()
	var ids []string // newest first
	for n := 3 * page; n > 0; n-- {
		ids = append(ids, fmt.Sprintf("0190%04x-0000-7000-8000-%012x", n/100, n*7919))
	}
	list := func(before string, limit int) ([]string, error) {
		var got []string
		for _, id := range ids {
			if (before == "" || id < before) && len(got) < limit {
				got = append(got, id)
			}
		}
		return got, nil
	}
	if !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Fatal("the ids are not in order")
	}
	last, first := ids[len(ids)-1], ids[0]
	for _, c := range []struct {
		given, want string
		code        plugin.Code
	}{
		{given: last[:35], want: last},
		{given: last[30:], want: last}, // on the third page
		{given: first[28:], want: first},
		{given: "019000", code: plugin.CodeInvalidInput},   // several begin so
		{given: "01900007", code: plugin.CodeInvalidInput}, // likewise
		{given: last[31:], code: plugin.CodeInvalidInput},  // too short
		{given: "", code: plugin.CodeInvalidInput},         //
		{given: "ffffffff", code: plugin.CodeNotFound},     //
		{given: "%______", code: plugin.CodeNotFound},      // no pattern
		{given: strings.Repeat("0", 65), code: plugin.CodeInvalidInput},
	} {
		got, err := findID("call", c.given, list)
		if got != c.want || c.code != "" && plugin.CodeOf(err) != c.code || c.code == "" && err != nil {
			t.Errorf("%q: got %q, %v", c.given, got, err)
		}
	}
}
