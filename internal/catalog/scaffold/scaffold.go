// Package scaffold writes a new plugin from a template.
//
// What it writes is complete: the host accepts and runs it as it stands, and
// it has tests, examples and a README that says where to go on. The templates
// are below templates: those of a language, and those that all of them share
// but the one for hooks.
//
//	files, err := scaffold.New("hello", "hello", "python")
package scaffold

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/runtime/script"
	"github.com/mortise-dev/mortise/plugin"
)

// Languages are those that a plugin can be written in. A command is any
// program, here a shell script. A hook is TypeScript that the host runs inside
// of itself, for an agent.
var Languages = []string{"python", "ts", "go", "command", hook}

// hook is the language that has a contract of its own, and so no template that it
// shares with the others.
const hook = "hook"

// hookTypes is the file that has the types of hooks, for editors.
const hookTypes = "mortise-hooks.d.ts"

//go:embed templates
var templates embed.FS

// A subject is what the templates speak of.
type subject struct {
	Name      string
	Ident     string // the name as a module of Python
	Module    string // the last part of a Go module's path
	Runner    string // the manifest's, in YAML
	Isolation plugin.Isolation
}

// fill returns what puts a subject into a template. It is no text/template, which calls methods by
// name, so that the linker would keep every method in the program.
func (s subject) fill() *strings.Replacer {
	return strings.NewReplacer("{{.Name}}", s.Name, "{{yaml .Name}}", yamlWord(s.Name), "{{.Ident}}", s.Ident,
		"{{.Module}}", s.Module, "{{.Runner}}", s.Runner, "{{.Isolation}}", string(s.Isolation))
}

var runners = map[string]string{
	"python":  "{kind: process, entry: plugin.py}",
	"ts":      "{kind: process, entry: plugin.ts}",
	"go":      "{kind: process, command: [./plugin]}",
	"command": `{kind: process, command: [./plugin.sh], protocol: "1"}`,
}

// Contracts are those that a plugin can be begun for, with the languages of each; the
// first is taken where none is named.
var Contracts = map[string][]string{
	"mortise":    {"python", "ts", "go", "command"},
	"kernel":     {"python"},
	"shu":        {"python"},
	"eventmill":  {"python"},
	"openhermit": {"ts"},
	"runtime":    {"command"},
}

// Template returns what [New] is to write for a contract in a language; either may be
// empty. What there is no template for is invalid_input.
func Template(contract, lang string) (string, error) {
	if contract == "" || contract == "mortise" {
		return cmp.Or(lang, "python"), nil
	}
	langs, known := Contracts[contract]
	if !known {
		return "", invalid("there is no contract %q: choose one of %s", contract, strings.Join(slices.Sorted(maps.Keys(Contracts)), ", "))
	}
	if lang != "" && !slices.Contains(langs, lang) {
		return "", invalid("there is no template for %s in %q: it is %s", contract, lang, strings.Join(langs, " or "))
	}
	return cmp.Or(own[contract], contract), nil
}

// own are the templates that are called otherwise than their contract.
var own = map[string]string{"openhermit": hook}

// whole are the templates that share none with the others.
var whole = []string{hook, "shu", "eventmill", "kernel"}

// strict are the forms of names in contracts that take fewer than others.
var strict = map[string]*pattern.Pattern{"eventmill": pattern.New(`^[a-z][a-z0-9_]*$`)}

var nameForm = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

// New writes a plugin called name into dir, which must be empty or not there
// yet, and returns the files by their slash paths within it. A plugin in Go is
// compiled too; if that is not possible, the files are there and the error is
// a [*NotBuilt]. After any other error nothing is left behind.
func New(dir, name, lang string) (files []string, err error) {
	if !nameForm.MatchString(name) {
		return nil, invalid("%q is no name: a name is a letter and up to 127 letters, digits, dots, hyphens and underscores", name)
	}
	if form := strict[lang]; form != nil && !form.MatchString(name) {
		return nil, invalid("%q is no name in that contract: one is small letters, digits and underscores", name)
	}
	if !slices.Contains(Languages, lang) && Contracts[lang] == nil {
		return nil, invalid("there is no template in %q: choose one of %s", lang, strings.Join(Languages, ", "))
	}
	content, err := render(name, lang)
	if err != nil {
		return nil, err
	}
	if err := write(dir, content); err != nil {
		return nil, err
	}
	files = slices.Sorted(maps.Keys(content))
	if lang != "go" {
		return files, nil
	}
	if err := build(dir); err != nil {
		return files, err
	}
	files = append(files, program)
	slices.Sort(files)
	return files, nil
}

// notWord are the characters that no module of Python has in its name.
var notWord = pattern.New(`[^A-Za-z0-9_]`)

// render returns the content of each file.
func render(name, lang string) (map[string][]byte, error) {
	about := subject{Name: name, Ident: notWord.ReplaceAllString(name, "_"), Module: strings.TrimRight(name, "."), Runner: runners[lang], Isolation: plugin.IsolationTenant}
	if lang == "runtime" {
		about.Runner = runners["command"]
	}
	if lang == "command" || lang == "runtime" {
		about.Isolation = plugin.IsolationCall // protocol 1 has no other
	}
	content, fill := map[string][]byte{}, about.fill()
	roots := []string{"templates/shared", "templates/" + lang}
	if slices.Contains(whole, lang) {
		roots = roots[1:]
	}
	if lang == hook {
		content[hookTypes] = []byte(script.Definitions())
	}
	for _, root := range roots {
		err := fs.WalkDir(templates, root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := templates.ReadFile(file)
			if err != nil {
				return err
			}
			content[strings.ReplaceAll(target(strings.TrimPrefix(file, root+"/")), "TOOL", name)] = []byte(fill.Replace(string(text)))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the templates: %w", err)
		}
	}
	if lang == "go" {
		if err := addSDK(content); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// target returns the name of the file that a template makes. Templates have an
// ending of their own so that no tool takes them for what they will be.
func target(name string) string {
	name = strings.TrimSuffix(name, ".tmpl")
	if path.Base(name) == "gitignore" {
		return path.Join(path.Dir(name), ".gitignore")
	}
	return name
}

// write makes the files below dir. If one cannot be made, all are removed.
func write(dir string, content map[string][]byte) (err error) {
	existing, err := os.ReadDir(dir)
	switch {
	case err == nil && len(existing) > 0:
		return invalid("%s is not empty: name a directory that is, or is not there yet", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return invalid("%s cannot be used: %w", dir, err)
	}
	fresh := err != nil
	defer func() {
		if err == nil {
			return
		}
		if fresh {
			_ = rmtree.Remove(dir)
			return
		}
		for name := range content {
			top, _, _ := strings.Cut(name, "/")
			_ = rmtree.Remove(filepath.Join(dir, top))
		}
	}()
	for name, data := range content {
		file := filepath.Join(dir, filepath.FromSlash(name))
		mode := fs.FileMode(0o644)
		if path.Ext(name) == ".sh" {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("writing the plugin: %w", err)
		}
		if err := os.WriteFile(file, data, mode); err != nil {
			return fmt.Errorf("writing the plugin: %w", err)
		}
	}
	return nil
}

// yamlWord quotes the names that YAML would read as something else than text.
func yamlWord(name string) string {
	switch strings.ToLower(name) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return `"` + name + `"`
	}
	return name
}

func invalid(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeInvalidInput, format, args...)
}
