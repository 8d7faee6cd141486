package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
)

// filled makes a closed database with so many kilobytes of bodies.
func filled(t *testing.T, kilobytes int) (dir string, raw []byte) {
	t.Helper()
	dir = t.TempDir()
	st := open(t, dir)
	for i := range kilobytes / 64 {
		err := st.Write(t.Context(), func(tx store.Tx) error {
			_, err := tx.PutBody("t", []byte(fmt.Sprintf("%d %s", i, strings.Repeat("x", 64<<10))), time.Time{})
			if err == nil {
				err = note(tx)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	return dir, raw
}

// A database whose end is missing, or whose pages are damaged, is named as such:
// what a look at it when it is opened cannot see, a check of the whole does.
func TestAMalformedDatabaseIsFound(t *testing.T) {
	t.Parallel()
	for _, kilobytes := range []int{64, 4096} {
		dir, whole := filled(t, kilobytes)
		path := filepath.Join(dir, sqlite.File)
		attempt := func(what string, damaged []byte, atOnce bool) {
			t.Helper()
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			var bad *sqlite.MalformedError
			if err := sqlite.Check(t.Context(), dir); !errors.As(err, &bad) {
				t.Errorf("%d KiB, %s: the whole was checked: %v", kilobytes, what, err)
			}
			st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
			if err == nil {
				st.Close()
			}
			if atOnce && !errors.As(err, &bad) {
				t.Errorf("%d KiB, %s: it was opened: %v", kilobytes, what, err)
			}
		}
		if err := sqlite.Check(t.Context(), dir); err != nil {
			t.Errorf("undamaged: %v", err)
		}
		for _, cut := range []int{1, 512, 4096, len(whole) / 2, len(whole) - 4096} {
			attempt(fmt.Sprintf("%d bytes short", cut), whole[:len(whole)-cut], true)
		}
		for _, at := range []int{0, 16, 100, 101, 103} { // the header, and the page of the schema
			damaged := append([]byte{}, whole...)
			damaged[at] ^= 0xFF
			attempt(fmt.Sprintf("byte %d", at), damaged, at <= 100)
		}
		for page := 1; page < len(whole)/4096; page += 1 + len(whole)/4096/20 { // its first byte says what a page is
			damaged := append([]byte{}, whole...)
			copy(damaged[page*4096:], strings.Repeat("\xee", 64))
			attempt(fmt.Sprintf("page %d", page+1), damaged, false)
		}
	}
}

// A database has one name: hosts that come by two do not know of each other.
func TestADatabaseWithTwoNamesHasNoSecondHost(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(string, string) error{"a hard link": os.Link, "a symbolic link": os.Symlink} {
		dir, other := t.TempDir(), t.TempDir()
		st := open(t, dir)
		write(t, st)
		if err := link(filepath.Join(dir, sqlite.File), filepath.Join(other, sqlite.File)); err != nil {
			t.Fatal(err)
		}
		second, err := sqlite.Open(t.Context(), other, sqlite.Options{})
		if err == nil {
			second.Close()
			t.Errorf("by %s there is a second host", name)
		} else if !strings.Contains(err.Error(), "--home") && !strings.Contains(err.Error(), "names") {
			t.Errorf("%s: %v", name, err)
		}
		write(t, st)
	}
}
