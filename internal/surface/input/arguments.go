package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
)

// Arguments are the members of an input as a person wrote them beside it.
type Arguments struct {
	Object string     // one JSON object, after --
	List   []Argument // --name value, after --
	Set    []string   // key=value or outer.inner=value, of --set
}

// An Argument is one member of the input, as it stands after --.
type Argument struct {
	Name string
	Text string
	Bare bool // a flag without a value, which is true
}

// Read reads what stands after -- on the command line: --name value, --name=value, a bare
// --flag, and one JSON object. The values of --set are taken as they are.
func Read(args, set []string) (a Arguments, err error) {
	a.Set = set
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !utf8.ValidString(arg) {
			return a, Misuse{fmt.Errorf("%q is not UTF-8, as JSON must be", arg)}
		}
		name, isFlag := strings.CutPrefix(arg, "--")
		name, text, assigned := strings.Cut(name, "=")
		switch {
		case !isFlag && strings.HasPrefix(arg, "{") && a.Object == "":
			a.Object = arg
			continue
		case !isFlag || name == "":
			return a, Misuse{fmt.Errorf("%s after --: write --name value, a bare --flag, or one JSON object", Quoted(arg))}
		case assigned:
			a.List = append(a.List, Argument{Name: name, Text: text})
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			i++
			if !utf8.ValidString(args[i]) {
				return a, Misuse{fmt.Errorf("--%s: the value is not UTF-8, as JSON must be", name)}
			}
			a.List = append(a.List, Argument{Name: name, Text: args[i]})
		default:
			a.List = append(a.List, Argument{Name: name, Bare: true})
		}
	}
	return a, nil
}

// Into puts the arguments, then the values of --set, among the members of an input.
// Values are read as the schema of the operation has them: for an investigation plugin
// as text unless it says otherwise, and the last of several counts.
func (a Arguments) Into(members map[string]any, schema json.RawMessage, investigates bool) error {
	seen := map[string]bool{}
	for _, arg := range a.List {
		if seen[arg.Name] && !investigates {
			return Misuse{fmt.Errorf("--%s is given twice after --", arg.Name)}
		}
		seen[arg.Name] = true
		switch {
		case arg.Bare:
			members[arg.Name] = true
		case investigates:
			members[arg.Name] = argumentOf(arg.Text, Property(schema, arg.Name))
		default:
			members[arg.Name] = valueOf(arg.Text, schema, []string{arg.Name})
		}
	}
	return setMembers(members, a.Set, schema)
}

// Places returns the places of the input whose values the person typed: with --name, with
// --set, or in an object after --. An --input is not among them: programs write it, and
// what it says may be a stranger's.
func (a Arguments) Places() (places [][]string) {
	var members map[string]any
	_ = json2.Unmarshal([]byte(a.Object), &members) // what is no object has no members
	for _, name := range slices.Sorted(maps.Keys(members)) {
		places = append(places, []string{name})
	}
	for _, arg := range a.List {
		places = append(places, []string{arg.Name})
	}
	for _, pair := range a.Set {
		path, _, _ := strings.Cut(pair, "=")
		places = append(places, strings.Split(path, "."))
	}
	return places
}

// Outputs returns the arguments that name a file to write, and the texts that were typed
// for them, as far as they stand in the input. typed is an --input, which counts where it
// is an object that was typed.
func (a Arguments) Outputs(typed string, input json.RawMessage) map[string]string {
	texts := map[string]string{}
	for _, whole := range []string{typed, a.Object} {
		var members map[string]any
		if strings.HasPrefix(strings.TrimSpace(whole), "{") && json2.Unmarshal([]byte(whole), &members) == nil {
			for name, value := range members {
				if text, is := value.(string); is {
					texts[name] = text
				}
			}
		}
	}
	for _, arg := range a.List {
		texts[arg.Name] = arg.Text
	}
	for _, pair := range a.Set {
		name, text, _ := strings.Cut(pair, "=")
		texts[name] = text
	}
	var members map[string]any
	if len(texts) == 0 || json2.Unmarshal(input, &members) != nil {
		return nil
	}
	maps.DeleteFunc(texts, func(member, text string) bool {
		return !namesOutput(member) || text == "" || members[member] != any(text)
	})
	return texts
}

// outputWords are those of an argument that names a file to write: output_path,
// export_file, save_to. The shim of the contract knows the same.
var outputWords = []string{"output", "out", "export", "save", "dest", "destination", "write"}

func namesOutput(member string) bool {
	words := strings.Split(strings.ReplaceAll(strings.ToLower(member), "-", "_"), "_")
	last := words[len(words)-1]
	if last == "to" && slices.Contains(outputWords, words[0]) {
		return true
	}
	return slices.Contains([]string{"path", "file", "filename"}, last) &&
		slices.ContainsFunc(words[:len(words)-1], func(word string) bool { return slices.Contains(outputWords, word) })
}

// Quoted is a word as a shell reads it.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
