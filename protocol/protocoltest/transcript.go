// Package protocoltest reads the recorded conversations of protocol/testdata
// and holds real ones against them.
package protocoltest

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/tools/txtar"
)

// A Transcript is one conversation.
type Transcript struct {
	Name    string
	Version string // of the protocol, "1" or "2"
	Only    string // "plugin" where our host would not begin it
	Lines   []Line
}

// A Line is one line of a conversation.
type Line struct {
	FromHost bool
	Text     string
}

// Load reads every transcript of dir.
func Load(dir string) ([]Transcript, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no transcripts in %s: %v", dir, err)
	}
	slices.Sort(paths)
	var all []Transcript
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		t := Transcript{Name: strings.TrimSuffix(filepath.Base(path), ".txtar"), Version: "2"}
		for _, f := range archive.Files {
			text := strings.TrimSpace(string(f.Data))
			switch f.Name {
			case "only":
				t.Only = text
			case "version":
				t.Version = text
			case "conversation":
				for line := range strings.SplitSeq(text, "\n") {
					from, rest, _ := strings.Cut(line, " ")
					if from != "->" && from != "<-" {
						return nil, fmt.Errorf("%s: a line begins with %q", path, from)
					}
					t.Lines = append(t.Lines, Line{FromHost: from == "->", Text: rest})
				}
			default:
				return nil, fmt.Errorf("%s: unknown section %s", path, f.Name)
			}
		}
		all = append(all, t)
	}
	return all, nil
}

// Match reports how got differs from want as JSON, "" where it does not. The
// string "<any>" in want stands for any value, and ignore names members that
// are not compared wherever they are.
func Match(want, got string, ignore ...string) string {
	w, err := decode(want)
	if err != nil {
		return fmt.Sprintf("the transcript holds %s: %v", want, err)
	}
	g, err := decode(got)
	if err != nil {
		return fmt.Sprintf("got %s: %v", got, err)
	}
	return differ("", w, g, ignore)
}

func differ(at string, want, got any, ignore []string) string {
	if want == "<any>" {
		return ""
	}
	w, isObject := want.(map[string]any)
	g, also := got.(map[string]any)
	if !isObject || !also {
		if l, isList := want.([]any); isList {
			if m, also := got.([]any); also && len(l) == len(m) {
				for i := range l {
					if d := differ(fmt.Sprintf("%s/%d", at, i), l[i], m[i], ignore); d != "" {
						return d
					}
				}
				return ""
			}
		}
		if !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("at %s: want %v, got %v", at, want, got)
		}
		return ""
	}
	for name := range g {
		if _, expected := w[name]; !expected && !slices.Contains(ignore, name) {
			return fmt.Sprintf("at %s: unexpected member %s", at, name)
		}
	}
	for name, value := range w {
		if slices.Contains(ignore, name) {
			continue
		}
		other, present := g[name]
		if !present {
			return fmt.Sprintf("at %s: member %s is missing", at, name)
		}
		if d := differ(at+"/"+name, value, other, ignore); d != "" {
			return d
		}
	}
	return ""
}

// decode reads JSON with its numbers as they are spelled.
func decode(text string) (any, error) {
	var value any
	numbers := json.UnmarshalFromFunc(func(dec *jsontext.Decoder, into *any) error {
		if dec.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		raw, err := dec.ReadValue()
		*into = jsontext.Value(raw).Clone()
		return err
	})
	err := json.Unmarshal([]byte(text), &value, json.WithUnmarshalers(numbers))
	return value, err
}
