package host

import (
	"errors"
	"slices"
	"testing"
)

// numbers is a list of so many rows, the newest first, and how many rows were looked at.
type numbers struct{ n, read int }

func (l *numbers) page(limit int, last *int) ([]int, error) {
	from := l.n
	if last != nil {
		from = *last
	}
	var rows []int
	for i := from - 1; i >= 0 && len(rows) < limit; i-- {
		rows = append(rows, i)
	}
	l.read += len(rows)
	return rows, nil
}

// A page looks at a bounded number of rows, however few of them its caller may see, and all pages
// together have each row once.
func TestAPageLooksAtABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	for name, every := range map[string]int{"all rows": 1, "every third": 3, "one in a thousand": 1000, "none": 1 << 30} {
		for _, most := range []int{0, 1, 7, 200, 201} {
			l := &numbers{n: 5000}
			var got []int
			last, pages := &l.n, 0
			for last != nil {
				before := l.read
				from := last
				rows, rest, err := theirs(most, func(limit int, last *int) ([]int, error) {
					if last == nil {
						last = from
					}
					return l.page(limit, last)
				}, func(i *int) (bool, error) { return *i%every == every-1, nil })
				if err != nil {
					t.Fatal(err)
				}
				if looked := l.read - before; looked > mostLooked {
					t.Errorf("%s by %d: a page looked at %d rows, want at most %d", name, most, looked, mostLooked)
				}
				got = append(got, rows...)
				if last = rest; last == nil && most > 0 && len(rows) == most { // as a surface goes on
					last = &rows[most-1]
				}
				if pages++; pages > 6000 {
					t.Fatalf("%s by %d: there is no end", name, most)
				}
			}
			var want []int
			for i := l.n - 1; i >= 0; i-- {
				if i%every == every-1 {
					want = append(want, i)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s by %d: the pages have %d rows, want %d", name, most, len(got), len(want))
			}
		}
	}
}

// collect goes on over pages without rows, up to a number of pages, and stops at an error.
func TestCollect(t *testing.T) {
	t.Parallel()
	failure := errors.New("the store is away")
	list := map[string]struct {
		rows []int
		rest string
		err  error
	}{"": {[]int{9}, "9", nil}, "9": {nil, "8", nil}, "8": {[]int{5, 4}, "4", nil}, "4": {[]int{3}, "", nil}, "broken": {nil, "", failure}}
	page := func(before string, limit int) ([]int, string, error) {
		at := list[before]
		return at.rows[:min(len(at.rows), max(limit, 1))], at.rest, at.err
	}
	for _, c := range []struct {
		before       string
		limit, pages int
		want         []int
	}{{"", 10, 0, []int{9, 5, 4, 3}}, {"", 2, 0, []int{9, 5}}, {"", 10, 2, []int{9}}, {"9", 1, 0, []int{5}}} {
		if got, err := collect(c.before, c.limit, c.pages, page); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	if _, err := collect("broken", 10, 0, page); !errors.Is(err, failure) {
		t.Errorf("a page that fails: %v", err)
	}
}
