package editor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// A table is a configuration in TOML, whose servers are tables below one. What is written and
// removed are statements of the server's own tables; every other byte stays, comments too.
type table struct{ of string }

func (t table) put(text []byte, e Entry) ([]byte, error) {
	all, servers, err := t.parse(text)
	if err != nil {
		return nil, err
	}
	own := []string{t.of, e.Name}
	if _, there := servers[e.Name]; there {
		after, err := t.update(string(text), all, e)
		if err != nil {
			return nil, err
		}
		return t.checked(after, e)
	}
	if i := slices.IndexFunc(all, func(s statement) bool { return startsWith(s.in(), own) }); i >= 0 {
		return nil, errByHand(own)
	}
	var b strings.Builder
	b.Write(text)
	if b.Len() > 0 {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "[%s]\ncommand = %s\nargs = %s\n", strings.Join(own, "."), quote(e.Command), quotedList(e.Args))
	if len(e.Env) > 0 {
		b.WriteString("\n" + t.envTable(e))
	}
	return t.checked(b.String(), e)
}

func (t table) envTable(e Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s.%s.env]\n", t.of, e.Name)
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		fmt.Fprintf(&b, "%s = %s\n", name, quote(e.Env[name]))
	}
	return b.String()
}

// parse returns the statements of a text and its servers. The text may be empty.
func (t table) parse(text []byte) ([]statement, map[string]any, error) {
	top := map[string]any{}
	if err := toml.Unmarshal(text, &top); err != nil {
		return nil, nil, err
	}
	all, err := statementsOf(string(text))
	servers, _ := top[t.of].(map[string]any)
	return all, servers, err
}

// checked returns a text that has the entry and can be read.
func (t table) checked(text string, e Entry) ([]byte, error) {
	_, servers, err := t.parse([]byte(text))
	if err != nil {
		return nil, err
	}
	if entry, _ := servers[e.Name].(map[string]any); entry["command"] != e.Command {
		return nil, errByHand([]string{t.of, e.Name})
	}
	return []byte(text), nil
}

// update gives the tables of a server the values of an entry. What else they have stays.
func (t table) update(text string, all []statement, e Entry) (string, error) {
	own := []string{t.of, e.Name}
	env := append(slices.Clone(own), "env")
	missing := map[string]string{"command": quote(e.Command), "args": quotedList(e.Args)}
	missingEnv := map[string]string{}
	for name, value := range e.Env {
		missingEnv[name] = quote(value)
	}
	var edits []edit
	set := func(s *statement, missing map[string]string, name string) {
		edits = append(edits, edit{s.value, s.end, missing[name]})
		delete(missing, name)
	}
	mainEnd, envEnd := 0, 0
	for i := range all {
		s := &all[i]
		switch {
		case !startsWith(s.in(), own):
		case s.header && s.array, !s.header && !startsWith(s.table, own):
			return "", errByHand(own)
		case s.header && slices.Equal(s.path, own):
			mainEnd = s.end
		case s.header && slices.Equal(s.path, env):
			envEnd = s.end
		case s.header:
		case slices.Equal(s.table, own):
			mainEnd = s.end
			switch s.path[0] {
			case "command", "args":
				if len(s.path) > 1 {
					return "", errByHand(own)
				}
				set(s, missing, s.path[0])
			case "url":
				return "", fmt.Errorf("it has another server called %s, at a url: rename that one", strings.Join(own, "."))
			case "env":
				return "", errByHand(env)
			}
		case slices.Equal(s.table, env):
			envEnd = s.end
			if _, given := e.Env[s.path[0]]; given && len(s.path) == 1 {
				set(s, missingEnv, s.path[0])
			} else if slices.Contains(Variables, s.path[0]) {
				edits = append(edits, cutStatement(text, s))
			}
		}
	}
	if mainEnd == 0 {
		return "", errByHand(own)
	}
	insert := func(after int, lines string) {
		rest, _, broken := strings.Cut(text[after:], "\n")
		if at := after + len(rest); broken {
			edits = append(edits, edit{at + 1, at + 1, lines})
		} else {
			edits = append(edits, edit{at, at, "\n" + lines})
		}
	}
	if len(missing) > 0 {
		insert(mainEnd, assigned(missing))
	}
	switch {
	case len(missingEnv) > 0 && envEnd > 0:
		insert(envEnd, assigned(missingEnv))
	case len(missingEnv) > 0:
		insert(mainEnd, "\n"+t.envTable(e))
	}
	return edited(text, edits), nil
}

func assigned(values map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s = %s\n", name, values[name])
	}
	return b.String()
}

func errByHand(path []string) error {
	return fmt.Errorf("it has %s in a form that is not changed here, such as keys with dots or an inline table: change it by hand", strings.Join(path, "."))
}

func (t table) remove(text []byte, name string) ([]byte, error) {
	all, servers, err := t.parse(text)
	if err != nil {
		return nil, err
	}
	own := []string{t.of, name}
	if _, there := servers[name]; !there {
		return text, nil
	}
	var edits []edit
	for i := range all {
		s := &all[i]
		switch {
		case !startsWith(s.in(), own):
		case s.header && s.array, !s.header && !startsWith(s.table, own):
			return nil, errByHand(own)
		default:
			edits = append(edits, cutStatement(string(text), s))
		}
	}
	after := edited(string(text), edits)
	if _, servers, err = t.parse([]byte(after)); err != nil {
		return nil, errors.Join(errByHand(own), err)
	}
	if _, there := servers[name]; there {
		return nil, errByHand(own)
	}
	return []byte(after), nil
}

func startsWith(path, with []string) bool {
	return len(path) >= len(with) && slices.Equal(path[:len(with)], with)
}

func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote returns a text as TOML writes it, which is as Go does but for what is not printable.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u00` + strconv.FormatInt(int64(r)>>4, 16) + strconv.FormatInt(int64(r)&15, 16))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
