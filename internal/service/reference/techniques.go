package reference

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
)

// BundledVersion says what the table of techniques holds that is there before a
// bundle of ATT&CK was read.
const BundledVersion = "18"

// Bundled is the form of a key whose data comes along with the host.
const Bundled = "bundled"

//go:embed techniques.txt
var techniquesText string

// tactics are those of the excerpt, by their marks in it.
var tactics = map[string]string{
	"RE": "Reconnaissance", "RD": "Resource Development", "IA": "Initial Access", "EX": "Execution", "PS": "Persistence", "PE": "Privilege Escalation",
	"DE": "Defense Evasion", "CA": "Credential Access", "DI": "Discovery", "LM": "Lateral Movement", "CO": "Collection", "C2": "Command And Control",
	"XF": "Exfiltration", "IM": "Impact",
	"EV": "Evasion", "IR": "Inhibit Response Function", "IP": "Impair Process Control", // of ics alone
}

// bundled returns the default table of techniques, used unless the owner has replaced
// it, as JSON.
var bundled = sync.OnceValue(func() json.RawMessage {
	raw, err := json2.Marshal(bundledTechniques(), json2.Deterministic(true))
	if err != nil { // of strings alone
		panic(err)
	}
	return raw
})

// bundledTechniques reads the excerpt.
func bundledTechniques() map[string]Technique {
	table := map[string]Technique{}
	matrix := ""
	for line := range strings.Lines(techniquesText) {
		line = strings.TrimSpace(line)
		if name, is := strings.CutPrefix(line, "== "); is {
			matrix = name
			continue
		}
		parts := strings.Split(line, "|")
		if len(parts) < 4 || strings.HasPrefix(line, "#") {
			continue
		}
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		id, t := parts[0], Technique{Name: parts[1], Tactics: []string{}, Matrix: matrix, URL: addressOf(parts[0]), Version: BundledVersion}
		for mark := range strings.FieldsSeq(parts[2]) {
			t.Tactics = append(t.Tactics, tactics[mark])
		}
		table[id] = t
		for sub := range strings.SplitSeq(parts[3], ";") {
			number, name, found := strings.Cut(strings.TrimSpace(sub), " ")
			if found {
				own := id + "." + number
				table[own] = Technique{Name: name, Tactics: t.Tactics, Matrix: matrix, URL: addressOf(own), Version: BundledVersion}
			}
		}
	}
	return table
}

// bundledKey is what a list has of the excerpt, which was never changed here.
func bundledKey() Key {
	return Key{Key: MitreTechniques, Form: Bundled, Size: int64(len(bundled())), Version: versionsOf(bundled())}
}

// versionsOf says of which version each matrix of a table of techniques is: enterprise 18.1, ics 18.1.
// It is empty for what is no such table, or says no version.
func versionsOf(table []byte) string {
	var techniques map[string]struct {
		Matrix  string `json:"matrix"`
		Version string `json:"version"`
	}
	if json2.Unmarshal(table, &techniques) != nil {
		return ""
	}
	found := map[string]bool{}
	for _, t := range techniques {
		if _, known := matrices[t.Matrix+"-attack"]; known && versionForm.MatchString(t.Version) {
			found[t.Matrix+" "+t.Version] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// addressOf is where MITRE has a technique.
func addressOf(id string) string {
	return "https://attack.mitre.org/techniques/" + strings.ReplaceAll(id, ".", "/")
}

// titled spells a tactic as the table has it: command-and-control is Command And
// Control.
func titled(phase string) string {
	words := strings.FieldsFunc(phase, func(r rune) bool { return r == '-' || r == ' ' })
	for i, word := range words {
		first, size := utf8.DecodeRuneInString(word)
		words[i] = string(unicode.ToUpper(first)) + word[size:]
	}
	return strings.Join(words, " ")
}
