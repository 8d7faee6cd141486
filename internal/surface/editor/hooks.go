package editor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// hooks is a configuration of Claude Code that has commands to run before and after each tool.
type hooks struct{ events []string }

// Hooks returns the program as the one that asks the host before it runs a tool of its own, and
// whether it can. The configuration is another file, and the arguments of an entry are those of
// the command to run.
func (p Program) Hooks() (Program, bool) {
	if p.Name != "claude-code" {
		return Program{}, false
	}
	p.own, p.project = inHome(".claude", "settings.json"), ".claude/settings.json"
	p.format = hooks{[]string{"PreToolUse", "PostToolUse", "PostToolUseFailure"}}
	return p, true
}

// hookSeconds is how long the program lets the command run: longer than it waits for a person.
const hookSeconds = 120

// commandOf is the entry as a line for a shell. A program that is not there, or ends in an
// unknown way, blocks the tool: 2 is the status that says so.
func commandOf(e Entry) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		b.WriteString(name + "=" + shell(e.Env[name]) + " ")
	}
	b.WriteString(shell(e.Command))
	for _, arg := range e.Args {
		b.WriteString(" " + shell(arg))
	}
	return b.String() + blocks
}

// shell quotes a word where a shell would read it otherwise.
func shell(word string) string {
	if word != "" && strings.Trim(word, letters) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+="

// mark is in each command that is ours.
const mark = " hook claude-code"

// blocks is how each command that is ours ends.
const blocks = " || exit 2"

func (h hooks) put(text []byte, e Entry) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	unit := indentOf(text)
	all, err := member(&root, "hooks", unit, 0, true)
	if err != nil {
		return nil, err
	}
	for _, event := range h.events {
		list, err := member(all, event, unit, 1, true)
		if err != nil {
			return nil, err
		}
		if o, fresh := list.Value.(*hujson.Object); fresh && len(o.Members) == 0 {
			list.Value = &hujson.Array{}
		}
		array, is := list.Value.(*hujson.Array)
		if !is {
			return nil, fmt.Errorf("hooks.%s is no list", event)
		}
		if i := slices.IndexFunc(array.Elements, ours); i >= 0 {
			for j := range slices.Backward(array.Elements) { // one asks; more would ask again
				if j > i && ours(array.Elements[j]) {
					cutPart(array, j)
				}
			}
			if err := recommand(&array.Elements[i], commandOf(e)); err != nil {
				return nil, err
			}
			continue
		}
		at := strings.Repeat(unit, 3)
		raw, err := json.MarshalIndent(map[string]any{"matcher": "*", "hooks": []any{map[string]any{
			"type": "command", "command": commandOf(e), "timeout": hookSeconds,
		}}}, at, unit)
		if err != nil {
			return nil, err
		}
		raw = bytes.ReplaceAll(raw, []byte(`\u0026`), []byte("&"))
		value, err := hujson.Parse(raw)
		if err != nil {
			return nil, err
		}
		value.BeforeExtra = hujson.Extra("\n" + at)
		array.Elements = append(array.Elements, value)
		if len(bytes.TrimSpace(array.AfterExtra)) == 0 {
			array.AfterExtra = hujson.Extra("\n" + strings.Repeat(unit, 2))
		}
	}
	return root.Pack(), nil
}

func (h hooks) remove(text []byte, _ string) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	all, err := member(&root, "hooks", "", 0, false)
	if all == nil || err != nil {
		return text, err
	}
	removed := false
	o, is := all.Value.(*hujson.Object)
	if !is {
		return text, nil
	}
	for i := range slices.Backward(o.Members) {
		array, is := o.Members[i].Value.Value.(*hujson.Array)
		if !is || !slices.Contains(h.events, literal(o.Members[i].Name)) {
			continue
		}
		was := len(array.Elements)
		for j := range slices.Backward(array.Elements) {
			if ours(array.Elements[j]) {
				cutPart(array, j)
			}
		}
		if len(array.Elements) == was {
			continue
		}
		removed = true
		if len(array.Elements) == 0 { // it was made for ours
			cutPart(o, i)
		}
	}
	if !removed {
		return text, nil
	}
	if top := root.Value.(*hujson.Object); len(o.Members) == 0 {
		cutPart(top, slices.IndexFunc(top.Members, named("hooks")))
	}
	return root.Pack(), nil
}

// recommand gives the one command of an element that is ours another text.
func recommand(element *hujson.Value, command string) error {
	at := element.Find("/hooks/0/command")
	if at == nil {
		return fmt.Errorf("a hook of the host has no command")
	}
	if l, is := at.Value.(hujson.Literal); !is || l.String() != command {
		at.Value = hujson.String(command)
	}
	return nil
}

// ours reports whether an element of a list of hooks is one that put has written.
func ours(element hujson.Value) bool {
	standard, err := hujson.Standardize(element.Pack())
	var one struct {
		Hooks []struct{ Command string }
	}
	return err == nil && json.Unmarshal(standard, &one) == nil && len(one.Hooks) == 1 && strings.Contains(one.Hooks[0].Command, mark) && strings.HasSuffix(one.Hooks[0].Command, blocks)
}
