package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheGlossaryHolds checks every identifier that docs/glossary.md names: Go
// declarations, JSON members, columns of both engines' migrations, and commands
// with their flags.
func TestTheGlossaryHolds(t *testing.T) {
	t.Parallel()
	packages, all := goSources(t)
	engines := []string{migrations(t, "sqlite"), migrations(t, "postgres")}
	p := newPlace(t)
	rows := tables(t, "glossary.md", "term")
	if len(rows) < 40 {
		t.Errorf("the glossary has %d terms", len(rows))
	}
	for _, row := range rows {
		if len(row) != 6 || row[0] == "" || row[1] == "" {
			t.Errorf("%q is not a term with its definition and four names", row)
			continue
		}
		for _, name := range spans(row[2]) {
			pkg, rest, _ := strings.Cut(name, ".")
			declared, member, _ := strings.Cut(rest, ".")
			source := packages[pkg]
			if !matches(source, `(?m)^(?:type |func |const |var |\t)`+declared+`\b`) ||
				member != "" && !matches(source, `(?m)^type `+declared+` struct \{\n(?:[^}].*\n|\n)*?\t(?:\w+, )*`+member+`\b`) {
				t.Errorf("%s: Go has no %s", row[0], name)
			}
		}
		for _, name := range spans(row[3]) {
			if !matches(all, `json:"`+name+`[,"]`) {
				t.Errorf("%s: no JSON member is called %s", row[0], name)
			}
		}
		for _, name := range spans(row[4]) {
			table, column, _ := strings.Cut(name, ".")
			for _, sql := range engines {
				if !matches(sql, `(?m)^CREATE TABLE `+table+` \((?:\n[^)].*)*?\n\s+`+column+`\s`) &&
					!matches(sql, `ALTER TABLE `+table+` ADD COLUMN `+column+`\s`) {
					t.Errorf("%s: the migrations of an engine have no %s", row[0], name)
				}
			}
		}
		for _, name := range spans(row[5]) {
			command, flag, _ := strings.Cut(name, " --")
			help, _, err := p.mortise(append([]string{"help"}, strings.Fields(command)[1:]...)...)
			if err != nil || !strings.Contains(help, "\n  "+command) ||
				flag != "" && !regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--`+flag+`\b`).MatchString(help) {
				t.Errorf("%s: there is no command %s (%v)", row[0], name, err)
			}
		}
	}
}

func matches(text, form string) bool { return regexp.MustCompile(form).MatchString(text) }

// goSources returns the sources of each package by its directory's name, and of
// all together, without tests.
func goSources(t *testing.T) (packages map[string]string, all string) {
	t.Helper()
	packages = map[string]string{}
	var every strings.Builder
	for _, root := range []string{"../plugin", "../protocol", "../internal"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			packages[filepath.Base(filepath.Dir(path))] += string(raw)
			every.Write(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return packages, every.String()
}

func migrations(t *testing.T, engine string) string {
	t.Helper()
	paths, err := filepath.Glob("../internal/store/" + engine + "/migrations/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no migrations of %s: %v", engine, err)
	}
	var all strings.Builder
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

var retired = regexp.MustCompile(`(?i)\b(somebody|nobody|whoever|whomever|anybody|anew|thereof|wherein|lest)\b`)

// mayName are the files that have a retired word for a reason.
var mayName = map[string]string{
	"docs/glossary_test.go":                    "the list itself",
	"internal/runtime/sandbox/view.go":         "the system's user nobody, in the /etc/passwd of a sandbox",
	"internal/store/postgres/pgtest/server.go": "the system's user nobody, whom PostgreSQL runs as",
}

// TestNoRetiredWord keeps words out of the repository for which plain English
// has a term: pages, code with its comments and strings, stories and templates.
func TestNoRetiredWord(t *testing.T) {
	t.Parallel()
	read := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "build", "bin"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".go", ".md", ".py", ".ts", ".mjs", ".txtar", ".tmpl", ".json"}, filepath.Ext(path)):
			return nil
		case mayName[filepath.ToSlash(path[len("../"):])] != "":
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		if !retired.Match(raw) {
			return nil
		}
		for n, line := range strings.Split(string(raw), "\n") {
			if words := retired.FindAllString(line, -1); words != nil {
				t.Errorf("%s:%d: rewrite the sentence without %s", path, n+1, strings.Join(slices.Compact(words), ", "))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 1000 {
		t.Errorf("only %d files were read", read)
	}
}
