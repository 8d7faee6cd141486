// Package docs_test keeps the documentation true. This file runs every block of
// code on every page; the others hold pages against the code they speak of.
//
// The rules are:
//
// The blocks of a page run from top to bottom as in one bare shell: in a fresh
// directory with mortise on the PATH, a home directory of its own and the folder
// examples of the documentation, and no variable of Mortise set. Variables
// MORTISE_* that a block exports hold for those that follow.
// The first word after the fence is the language; what follows says what to do
// with the block.
//
//	sh              is run by sh -eu; failing fails the test
//	sh exit=N       must end with that exit status
//	sh release      is not run here, but by the tests of cmd/dist, in the directory of a
//	                release; release.md alone has such blocks
//	sh make         is not run: each `make x` in it is a target of the Makefile
//	output          is what the block of sh before it wrote to standard output;
//	                … stands for anything within a line, and alone on a line for any lines;
//	                a time, an id and a duration stand for any other
//	python FILE     is written to FILE; so are ts, go, json and sh FILE.sh
//	yaml FILE       likewise. A mortise.yaml is a configuration and must be
//	                accepted; a manifest.yaml must be one
//	json            without a file, every line of it is JSON, or the whole
//	text            is a drawing, and not run
//
// A word needs=node,go leaves the block out, with the reason, where one of these
// is not installed. Any other language, or word, is an error.
package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testdir"
	"github.com/mortise-dev/mortise/internal/base/testinput"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
	"github.com/mortise-dev/mortise/internal/host/config"
)

// binary is the directory that mortise was built into.
var binary string

// goCaches are the variables that keep what go has fetched and compiled where it
// is, for pages whose blocks run go with a home directory of their own.
var goCaches []string

func TestMain(m *testing.M) { os.Exit(withBinary(m)) }

func withBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mortise-docs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = dir
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		if out, err := exec.Command("go", "env", name).Output(); err == nil {
			goCaches = append(goCaches, name+"="+strings.TrimSpace(string(out)))
		}
	}
	made, err := testinput.Find("mortise")
	if err == nil {
		err = os.Symlink(made, filepath.Join(dir, "mortise"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// pages returns the paths of all pages, README.md of the repository included.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md"}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, path := range pages(t) {
		blocks := readBlocks(t, path)
		if len(blocks) == 0 {
			continue
		}
		t.Run(strings.TrimPrefix(path, "../"), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			for _, b := range blocks {
				if reason := b.absent(); reason != "" {
					t.Logf("not run: %s:%d: %s", path, b.line, reason)
					continue
				}
				if b.release {
					if path != "release.md" {
						t.Fatalf("%s:%d: nothing runs a block of release there", path, b.line)
					}
					continue
				}
				if err := p.do(b); err != nil {
					t.Fatalf("%s:%d: %v", path, b.line, err)
				}
			}
		})
	}
}

// A block is one fenced block of code.
type block struct {
	line     int // of the fence
	language string
	file     string
	exit     int
	make     bool
	release  bool
	needs    []string
	text     string
}

func readBlocks(t *testing.T, path string) []block {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	var open *block
	for n, line := range strings.Split(string(raw), "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			b, err := parseFence(strings.TrimSpace(line)[3:])
			if err != nil {
				t.Fatalf("%s:%d: %v", path, n+1, err)
			}
			b.line = n + 1
			open = &b
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", path, open.line)
	}
	return blocks
}

func parseFence(text string) (block, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return block{}, errors.New("a block names its language")
	}
	b := block{language: words[0]}
	if !slices.Contains([]string{"sh", "output", "python", "ts", "go", "yaml", "json", "text", "mermaid"}, b.language) {
		return b, fmt.Errorf("no test runs blocks of %s", b.language)
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "exit" && b.language == "sh":
			status, err := strconv.Atoi(value)
			if err != nil {
				return b, err
			}
			b.exit = status
		case word == "make" && b.language == "sh":
			b.make = true
		case word == "release" && b.language == "sh":
			b.release = true
		case key == "needs":
			b.needs = strings.Split(value, ",")
		case b.file == "" && strings.Contains(word, ".") && filepath.IsLocal(word):
			b.file = word
		default:
			return b, fmt.Errorf("%q says nothing about a block", word)
		}
	}
	if b.file == "" && slices.Contains([]string{"python", "ts", "go", "yaml"}, b.language) {
		return b, fmt.Errorf("a block of %s names the file that it is", b.language)
	}
	return b, nil
}

// absent says what is not installed and needed.
func (b *block) absent() string {
	needs := b.needs
	if b.language == "python" {
		needs = append(needs, "python3")
	}
	for _, program := range needs {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	return ""
}

// A place is where the blocks of one page run.
type place struct {
	dir, home string
	stdout    string   // of the last sh
	exported  []string // the variables MORTISE_* that the last sh left exported
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{dir: testdir.New(t), home: testdir.New(t)}
	examples, err := filepath.Abs("examples")
	if err == nil {
		err = os.Symlink(examples, filepath.Join(p.dir, "examples"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// environment is what every command here gets.
func (p *place) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "MORTISE_") || strings.HasPrefix(pair, "XDG_")
	})
	return append(slices.Concat(env, p.exported, goCaches), "HOME="+p.home, "PATH="+binary+string(os.PathListSeparator)+os.Getenv("PATH"),
		"TZ=UTC", "GOWORK=off", "GOPROXY=off", "GOFLAGS=")
}

// mortise runs one command line and returns what it wrote to standard output.
func (p *place) mortise(args ...string) (stdout string, status int, err error) {
	return p.run(filepath.Join(binary, "mortise"), args...)
}

func (p *place) run(program string, args ...string) (stdout string, status int, err error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = p.dir, p.environment()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), exit.ExitCode(), fmt.Errorf("%w\nstandard output:\n%sstandard error:\n%s", err, out.String(), errs.String())
	}
	return out.String(), 0, err
}

// do does with a block what the rules say.
func (p *place) do(b block) error {
	switch {
	case b.language == "text" || b.language == "mermaid": // TestThePictureHasTheLayers looks at the latter
		return nil
	case b.language == "output":
		return same(b.text, p.stdout)
	case b.make:
		return makeTargets(b.text)
	case b.file != "":
		return p.write(b)
	case b.language == "json":
		return checkJSON(b.text)
	}
	kept := filepath.Join(p.home, "exported")
	out, status, err := p.run("sh", "-euc", `trap 'env | grep "^MORTISE_" >"$0" || :' EXIT`+"\n"+b.text, kept)
	p.stdout = out
	if exported, err := os.ReadFile(kept); err == nil {
		p.exported = strings.Split(strings.TrimSpace(string(exported)), "\n")
	}
	switch {
	case status == b.exit && status != 0:
		return nil
	case err != nil:
		return err
	case status != b.exit:
		return fmt.Errorf("it ended with status %d, and the page says %d", status, b.exit)
	}
	return nil
}

// write writes a block to its file.
func (p *place) write(b block) error {
	path := filepath.Join(p.dir, b.file)
	if b.file == config.FileName {
		if _, err := config.Parse([]byte(b.text)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if filepath.Ext(path) == ".sh" {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(b.text), mode); err != nil {
		return err
	}
	switch {
	case b.language == "json":
		return checkJSON(b.text)
	case slices.Contains(contract.Manifests(), filepath.Base(path)):
		_, err := contract.Read(filepath.Dir(path))
		return err
	case b.language == "yaml" && b.file != config.FileName:
		return fmt.Errorf("%s is neither a manifest nor a configuration", b.file)
	}
	return nil
}

// passing are values that are others each time, and what they are compared as.
var passing = []struct {
	form *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "ID"},
	{regexp.MustCompile(`\b\d+(\.\d+)? m?s\b`), "TOOK"},
}

// same compares what a page shows with what there was.
func same(want, got string) error {
	for _, p := range passing {
		want, got = p.form.ReplaceAllString(want, p.is), p.form.ReplaceAllString(got, p.is)
	}
	lines := func(text string) []string {
		all := strings.Split(strings.TrimRight(text, "\n"), "\n")
		for i := range all {
			all[i] = strings.TrimRight(all[i], " ")
		}
		return all
	}
	var pattern strings.Builder
	for _, line := range lines(want) {
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		// A column is as wide as its widest cell, which the page need not show.
		for i, part := range strings.Split(line, "…") {
			if i > 0 {
				pattern.WriteString(".*")
			}
			for j, words := range regexp.MustCompile(` {2,}`).Split(part, -1) {
				if j > 0 {
					pattern.WriteString(" {2,}")
				}
				pattern.WriteString(regexp.QuoteMeta(words))
			}
		}
		pattern.WriteString("\n")
	}
	shown, err := regexp.Compile("^" + pattern.String() + "$")
	if err != nil {
		return err
	}
	if text := strings.Join(lines(got), "\n") + "\n"; !shown.MatchString(text) {
		return fmt.Errorf("the page shows\n%s\nand there was\n%s", want, text)
	}
	return nil
}

func checkJSON(text string) error {
	if json.Valid([]byte(text)) {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if !json.Valid([]byte(line)) {
			return fmt.Errorf("this is no JSON: %.120s", line)
		}
	}
	return nil
}

var target = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)

// makeTargets checks that each `make x` has a target x.
func makeTargets(text string) error {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		return err
	}
	named := target.FindAllStringSubmatch(text, -1)
	if len(named) == 0 {
		return errors.New("no target of the Makefile is named here")
	}
	for _, m := range named {
		if !bytes.Contains(makefile, []byte("\n"+m[1]+":")) {
			return fmt.Errorf("the Makefile has no target %s", m[1])
		}
	}
	return nil
}

// A span such as `make test` within a paragraph counts as well.
func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	for _, path := range pages(t) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range regexp.MustCompile("`make [a-z-]+[^`]*`").FindAllString(string(raw), -1) {
			if err := makeTargets(span); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every link that stays in the repository.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, path := range pages(t) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			file := path
			if to != "" {
				file = filepath.Join(filepath.Dir(path), to)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
				continue
			}
			if anchor != "" && !info.IsDir() && !slices.Contains(anchors(t, file), anchor) {
				t.Errorf("%s links to %s, and that page has no such heading", path, m[1])
			}
		}
	}
}

// anchors returns what the headings of a page are called in links.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		title = regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(title, "")
		all = append(all, strings.ReplaceAll(title, " ", "-"))
	}
	return all
}

// TestProseFits keeps lines at a length that a diff can show.
func TestProseFits(t *testing.T) {
	t.Parallel()
	for _, path := range pages(t) {
		if path == "protocol.md" || path == "codes.md" {
			continue // tables and frames of the wire; generated
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for n, line := range strings.Split(string(raw), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if len([]rune(line)) > 130 && !code && !strings.HasPrefix(line, "|") && !strings.Contains(line, "](") {
				t.Errorf("%s:%d: the line has %d characters", path, n+1, len([]rune(line)))
			}
		}
	}
}

// tables returns the cells of every row below a table's head whose first title
// is first.
func tables(t *testing.T, path, first string) [][]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	within := false
	for line := range strings.SplitSeq(string(raw), "\n") {
		if !strings.HasPrefix(line, "|") {
			within = false
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == first:
			within = true
		case within && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table that begins with the title %s", path, first)
	}
	return rows
}

var span = regexp.MustCompile("`([^`]+)`")

// spans returns what stands between backquotes.
func spans(cell string) []string {
	var all []string
	for _, m := range span.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestDecisionsAreListed: each decision is on the list under its own title, and
// says what was asked, answered and given up.
func TestDecisionsAreListed(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("adr/README.md")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("adr/[0-9]*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	for i, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		title, _, _ := strings.Cut(string(raw), "\n")
		if number := fmt.Sprintf("%04d", i+1); !strings.HasPrefix(name, number) {
			t.Errorf("%s stands where %s belongs", name, number)
		}
		if line := fmt.Sprintf("- [%s](%s): %s\n", name[:4], name, strings.TrimPrefix(title, fmt.Sprintf("# %d. ", i+1))); !bytes.Contains(list, []byte(line)) {
			t.Errorf("adr/README.md has not the line %s", line)
		}
		for _, part := range []string{"**Question.**", "**Answer.**", "**What we gave up.**"} {
			if !bytes.Contains(raw, []byte(part)) {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
}
