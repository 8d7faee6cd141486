package environment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A requirement is one version of one project, with the hashes that its file may have.
type requirement struct {
	line    int
	name    string // as indexes write it
	version string
	hashes  []string // SHA-256, in lower case
}

// The bounds of requirements.txt.
const (
	MaxBytes        = 1 << 20
	maxRequirements = 512
	maxHashes       = 2_000 // of one line
)

var (
	pinned    = pattern.New(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[A-Za-z0-9._, -]*\])?\s*==\s*([A-Za-z0-9.!+_-]+)$`)
	hashed    = pattern.New(`^--hash=sha256:([0-9A-Fa-f]{64})$`)
	separates = pattern.New(`[-_.]+`)
)

// normal returns the one spelling of a project's name (PEP 503).
func normal(name string) string {
	return strings.ToLower(separates.ReplaceAllString(name, "-"))
}

// read returns what requirements.txt asks for. What would have to be resolved, and what has
// no hashes unless unhashed allows that, is refused with its line.
func read(text []byte, unhashed bool) ([]requirement, error) {
	if len(text) > MaxBytes {
		return nil, refused("%s is larger than %d bytes", File, MaxBytes)
	}
	var all []requirement
	seen := map[string]int{}
	for _, l := range joined(string(text)) {
		if l.text == "" || l.text == "--require-hashes" {
			continue
		}
		r, err := parse(l.text)
		if err != nil {
			return nil, refused("%s:%d: %w", File, l.number, err)
		}
		if len(r.hashes) == 0 && !unhashed {
			return nil, refused("%s:%d: %s has no hash: write %s==%s --hash=sha256:..., or let plugins.environments.unhashed take it as it is", File, l.number, r.name, r.name, r.version)
		}
		if first := seen[r.name]; first != 0 {
			return nil, refused("%s:%d: %s stands in line %d already", File, l.number, r.name, first)
		}
		r.line, seen[r.name] = l.number, l.number
		if all = append(all, r); len(all) > maxRequirements {
			return nil, refused("%s names more than %d projects", File, maxRequirements)
		}
	}
	if len(all) == 0 {
		return nil, refused("%s asks for nothing", File)
	}
	return all, nil
}

// A line of requirements.txt, with those that continue it.
type line struct {
	number int
	text   string
}

// joined returns the lines without comments; a backslash at the end of one continues it.
func joined(text string) []line {
	var lines []line
	open := false
	for i, raw := range strings.Split(text, "\n") {
		raw = strings.TrimRight(raw, "\r")
		if at := strings.Index(raw, "#"); at == 0 || at > 0 && strings.ContainsAny(raw[at-1:at], " \t") {
			raw = raw[:at]
		}
		raw, continues := strings.CutSuffix(strings.TrimSpace(raw), `\`)
		raw = strings.TrimSpace(raw)
		if open {
			last := &lines[len(lines)-1]
			last.text = strings.TrimSpace(last.text + " " + raw)
		} else {
			lines = append(lines, line{i + 1, raw})
		}
		open = continues
	}
	return lines
}

func parse(text string) (requirement, error) {
	said, options := text, ""
	if at := strings.Index(text, "--"); at >= 0 {
		said, options = strings.TrimSpace(text[:at]), text[at:]
	}
	switch {
	case said == "" || strings.HasPrefix(said, "-"):
		return requirement{}, fmt.Errorf("%.80q is an option; where wheels come from is configured on the host", text)
	case strings.Contains(said, ";"):
		return requirement{}, fmt.Errorf("%.80q holds for some machines only: write the file for the interpreter that it is installed for", said)
	}
	found := pinned.FindStringSubmatch(said)
	if found == nil || strings.Contains(found[2], "*") {
		return requirement{}, fmt.Errorf("%.80q does not name one version: write NAME==VERSION for everything that is installed, as pip freeze and pip-compile do", said)
	}
	r := requirement{name: normal(found[1]), version: found[2]}
	for option := range strings.FieldsSeq(options) {
		hash := hashed.FindStringSubmatch(option)
		if hash == nil {
			return r, fmt.Errorf("%.90q is no hash of the form --hash=sha256:<64 hex digits>", option)
		}
		if r.hashes = append(r.hashes, strings.ToLower(hash[1])); len(r.hashes) > maxHashes {
			return r, fmt.Errorf("%s has more than %d hashes", r.name, maxHashes)
		}
	}
	return r, nil
}

// choose returns the wheel among the files of a project that a line asks for: of those whose
// hash may be right, the one that fits the interpreter best.
func (r requirement) choose(all []candidate, fits tags) (candidate, error) {
	best, rank := candidate{}, 0
	versions, others := map[string]bool{}, 0
	for _, c := range all {
		w, ok := parseWheel(c.name)
		if !ok || w.name != r.name {
			continue
		}
		versions[w.version] = true
		if !sameVersion(w.version, r.version) || len(r.hashes) > 0 && c.sha256 != "" && !slices.Contains(r.hashes, c.sha256) {
			continue
		}
		if c.yanked && len(r.hashes) == 0 {
			continue
		}
		others++
		if n := fits.rank(w); n > rank || n == rank && n > 0 && c.name < best.name {
			best, rank = c, n
		}
	}
	switch {
	case rank > 0:
		return best, nil
	case others > 0:
		return best, refused("none of the %d wheels of %s %s is for Python %s on this machine", others, r.name, r.version, fits.version())
	case len(versions) == 0:
		return best, refused("there is no wheel of %s; source distributions, which run code to be installed, are not taken", r.name)
	}
	return best, refused("there is no wheel of %s %s with one of the hashes of %s:%d", r.name, r.version, File, r.line)
}

// sameVersion reports whether two spellings are of one version, as far as that is seen
// without its rules: letter case, a v in front, and zeros at the end of numbers.
func sameVersion(a, b string) bool { return plain(a) == plain(b) }

func plain(version string) string {
	version = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(version), "v"), "-", "_")
	if strings.Trim(version, "0123456789.") == "" {
		for strings.HasSuffix(version, ".0") {
			version = strings.TrimSuffix(version, ".0")
		}
	}
	return version
}
