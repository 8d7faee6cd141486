package reference

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// MitreTechniques is the key of the table of techniques, of all matrices.
const MitreTechniques = "mitre_techniques"

const (
	maxTechniques = 20_000  // in one table
	maxObject     = 8 << 20 // bytes of one object of a bundle
	maxBundle     = 1 << 30 // bytes of a bundle
	maxText       = 1_000   // bytes of a name, an address or a tactic
)

// A Technique is what the table has of a technique of MITRE ATT&CK.
type Technique struct {
	Name    string   `json:"name"`
	Tactics []string `json:"tactics"` // Initial Access, Command And Control
	URL     string   `json:"url"`
	Matrix  string   `json:"matrix"`            // enterprise, mobile, ics
	Version string   `json:"version,omitempty"` // of the matrix: 18.1; empty where the bundle does not say
}

// matrices are the names by which bundles call a matrix.
var matrices = map[string]string{
	"mitre-attack": "enterprise", "enterprise-attack": "enterprise",
	"mitre-mobile-attack": "mobile", "mobile-attack": "mobile",
	"mitre-ics-attack": "ics", "ics-attack": "ics",
}

// An object is what is read of one object of a STIX bundle.
type object struct {
	Type       string   `json:"type"`
	Name       string   `json:"name"`
	Revoked    bool     `json:"revoked"`
	Deprecated bool     `json:"x_mitre_deprecated"`
	Version    string   `json:"x_mitre_version"`
	Domains    []string `json:"x_mitre_domains"`
	Phases     []struct {
		Chain string `json:"kill_chain_name"`
		Phase string `json:"phase_name"`
	} `json:"kill_chain_phases"`
	References []struct {
		Source string `json:"source_name"`
		ID     string `json:"external_id"`
		URL    string `json:"url"`
	} `json:"external_references"`
}

// versionForm is what a version of a matrix looks like.
var versionForm = pattern.New(`^[0-9]{1,4}(\.[0-9]{1,4}){0,2}$`)

// collectionType is the type of the object that says which matrix a bundle is, and of which version.
const collectionType = "x-mitre-collection"

var techniqueID = pattern.New(`^T[0-9]{4}(\.[0-9]{3})?$`)

// ReadMitre returns the techniques of a STIX 2 bundle, as MITRE publishes them.
// Those that were revoked or deprecated are left out. The bundle is read object
// by object, and never whole.
func ReadMitre(r io.Reader) (map[string]Technique, error) {
	dec := jsontext.NewDecoder(bufio.NewReaderSize(io.LimitReader(r, maxBundle), 256<<10), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	bad := func(format string, args ...any) error {
		return plugin.Errorf(plugin.CodeInvalidInput, "this is no STIX bundle of ATT&CK: "+format, args...)
	}
	token, err := dec.ReadToken()
	if err != nil || token.Kind() != '{' {
		return nil, bad("it is no JSON object")
	}
	table, versions := map[string]Technique{}, map[string]string{}
	bundle, found := false, false
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, bad("%w", err)
		}
		switch name.String() {
		case "objects":
			found = true
			if err := readObjects(dec, table, versions); err != nil {
				return nil, bad("%w", err)
			}
		case "type":
			kind, err := dec.ReadToken()
			if err != nil || kind.Kind() != '"' || kind.String() != "bundle" {
				return nil, bad("its type is not bundle")
			}
			bundle = true
		default:
			if err := dec.SkipValue(); err != nil {
				return nil, bad("%w", err)
			}
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, bad("%w", err)
	}
	switch {
	case !bundle || !found:
		return nil, bad("it has no type bundle, or no objects")
	case len(table) == 0:
		return nil, bad("there is no technique in it that is in use")
	}
	for id, t := range table {
		t.Version = versions[t.Matrix]
		table[id] = t
	}
	return table, nil
}

// readObjects reads the member objects: techniques by id, and the version of each matrix that a collection names.
func readObjects(dec *jsontext.Decoder, table map[string]Technique, versions map[string]string) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '[' {
		return fmt.Errorf("its objects are no list")
	}
	for n := 0; dec.PeekKind() != ']'; n++ {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if len(raw) > maxObject {
			return fmt.Errorf("object %d has more than %d bytes", n, maxObject)
		}
		var o object
		if raw.Kind() != '{' || json.Unmarshal(raw, &o, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
			continue // of another form than any technique
		}
		if o.Type == collectionType && versionForm.MatchString(o.Version) {
			matrix, _, _ := strings.Cut(strings.ToLower(o.Name), " ") // Enterprise ATT&CK
			if _, known := matrices[matrix+"-attack"]; known {
				versions[matrix] = o.Version
			}
		}
		id, technique, ok := techniqueOf(&o)
		if !ok {
			continue
		}
		if earlier, taken := table[id]; taken { // in more than one matrix
			technique = merge(earlier, technique)
		}
		table[id] = technique
		if len(table) > maxTechniques {
			return fmt.Errorf("it has more than %d techniques", maxTechniques)
		}
	}
	_, err = dec.ReadToken()
	return err
}

// techniqueOf returns the technique that an object is, if it is one in use.
func techniqueOf(o *object) (id string, t Technique, ok bool) {
	if o.Type != "attack-pattern" || o.Revoked || o.Deprecated {
		return "", t, false
	}
	for _, ref := range o.References {
		matrix, known := matrices[ref.Source]
		if !known || !techniqueID.MatchString(ref.ID) {
			continue
		}
		id = ref.ID
		t = Technique{Name: cut(o.Name), URL: cut(ref.URL), Matrix: matrix, Tactics: []string{}}
		break
	}
	if id == "" || t.Name == "" {
		return "", t, false
	}
	if t.Matrix == "enterprise" { // newer bundles call all matrices mitre-attack
		for _, domain := range o.Domains {
			if matrix, known := matrices[domain]; known {
				t.Matrix = matrix
				break
			}
		}
	}
	for _, phase := range o.Phases {
		tactic := titled(cut(phase.Phase))
		if _, known := matrices[phase.Chain]; known && tactic != "" && !slices.Contains(t.Tactics, tactic) {
			t.Tactics = append(t.Tactics, tactic)
		}
	}
	return id, t, true
}

// merge joins what two objects say of one technique. The first has the last word.
func merge(a, b Technique) Technique {
	for _, tactic := range b.Tactics {
		if !slices.Contains(a.Tactics, tactic) {
			a.Tactics = append(a.Tactics, tactic)
		}
	}
	if a.URL == "" {
		a.URL = b.URL
	}
	return a
}

func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
}

// AddMitre makes the table of techniques from bundles in files, in the place of
// the one that there was. It returns its key, and how many there are of each matrix.
func (d *Data) AddMitre(files ...string) (Key, map[string]int, error) {
	table, counts, err := MitreTable(files...)
	if err != nil {
		return Key{}, nil, err
	}
	key, err := d.put(MitreTechniques, ".json", table)
	return key, counts, err
}

// MitreTable makes that table, as JSON, and keeps it nowhere.
func MitreTable(files ...string) (table []byte, counts map[string]int, err error) {
	all := map[string]Technique{}
	for _, path := range files {
		table, err := readBundle(path)
		if err != nil {
			return nil, nil, err
		}
		for id, t := range table {
			if earlier, taken := all[id]; taken {
				t = merge(earlier, t)
			}
			all[id] = t
		}
	}
	counts = map[string]int{}
	for _, t := range all {
		counts[t.Matrix]++
	}
	table, err = json.Marshal(all, json.Deterministic(true))
	return table, counts, err
}

func readBundle(path string) (map[string]Technique, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the bundle cannot be read: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is a directory; name a STIX bundle, such as enterprise-attack.json", path)
	}
	table, err := ReadMitre(file)
	if err != nil {
		e := *plugin.AsError(err)
		e.Message = path + ": " + e.Message
		return nil, &e
	}
	return table, nil
}
