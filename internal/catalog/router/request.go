package router

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// MaxText is how much of a text is read, in bytes. What comes after it counts
// for nothing, and the answer says so.
const MaxText = 32 << 10

// A request is a query as the router understands it.
type request struct {
	query  Query
	text   string              // in lower case, as far as it is read
	words  string              // the words of the text in lower case, a space before and after each
	names  map[string]struct{} // what may be a name in the text, in lower case
	cut    bool
	kinds  []string // the types of the artifacts at hand, sorted
	pillar string
	why    string   // it is that pillar
	facets []string // what the request is about, sorted
	last   []Candidate
	manned map[string]bool // the pillars that candidates are of
}

// read understands a query over these candidates.
func read(q Query, candidates []Candidate) *request {
	text := q.Text
	r := &request{query: q, cut: len(text) > MaxText}
	if r.cut {
		text = text[:MaxText]
		for len(text) > 0 && !utf8.RuneStart(q.Text[len(text)]) { // not through a character
			text = text[:len(text)-1]
		}
	}
	text = strings.ToLower(strings.ToValidUTF8(text, " "))
	r.text = text
	r.words, r.names = wordsOf(text), namesIn(text)
	var types []string
	for _, artifact := range q.Artifacts {
		types = append(types, artifact.Type)
	}
	r.kinds = kinds(types)
	r.manned = map[string]bool{}
	for _, c := range candidates {
		if c.Manifest.Pillar != "" {
			r.manned[c.Manifest.Pillar] = true
		}
		if q.Last != "" && (q.Last == c.Manifest.Name || q.Last == c.Name()) {
			r.last = append(r.last, c)
		}
	}
	slices.SortFunc(r.last, func(a, b Candidate) int { return strings.Compare(a.Name(), b.Name()) })
	r.pillar, r.why = r.choosePillar()
	r.facets = r.chooseFacets(text, candidates)
	return r
}

// wordsOf returns the words of a text, a space before and after each, without
// the s of a plural.
func wordsOf(text string) string {
	var b strings.Builder
	b.WriteByte(' ')
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }) {
		b.WriteString(singular(word))
		b.WriteByte(' ')
	}
	return b.String()
}

// singular takes the s from a word of more than three letters: from that of a
// table as from that of a text, so that it need not be right, only the same.
func singular(word string) string {
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return word[:len(word)-1]
	}
	return word
}

// says reports whether the text has these words, one after another.
func (r *request) says(phrase string) bool {
	words := wordsOf(phrase)
	return len(words) > 1 && strings.Contains(r.words, words)
}

var nameRunes = pattern.New("[\"'`]?[a-z0-9][a-z0-9_./-]*[\"'`]?")

// namesIn returns what may be the name of a plugin in a text. A word that is
// nothing more counts only in quotes: report is a name, and a word.
func namesIn(text string) map[string]struct{} {
	found := map[string]struct{}{}
	for _, name := range nameRunes.FindAllString(text, -1) {
		bare := strings.Trim(name, "\"'`")
		quoted := len(name) == len(bare)+2
		bare = strings.TrimRight(bare, "./-")
		if quoted || strings.ContainsAny(bare, "_./-0123456789") {
			found[bare] = struct{}{}
		}
	}
	return found
}

// named reports whether the text has a candidate's name.
func (r *request) named(c Candidate) bool {
	_, plain := r.names[strings.ToLower(c.Manifest.Name)]
	_, full := r.names[strings.ToLower(c.Name())]
	return plain || full
}

// choosePillar returns the pillar of the request and why it is that one: what
// was chosen, then the session's, then that of an artifact which belongs to one
// pillar, then that of the terms in the text, then the usual one.
func (r *request) choosePillar() (name, why string) {
	if r.query.Pillar != "" {
		return r.query.Pillar, "it was chosen"
	}
	if r.query.Session != "" {
		return r.query.Session, "it is that of the session"
	}
	spoken := map[string][]string{}
	for _, p := range pillars {
		for _, term := range p.terms {
			if strings.Contains(r.text, term) {
				spoken[p.name] = append(spoken[p.name], strings.TrimSpace(term))
			}
		}
	}
	// Where artifacts belong to several pillars, the terms decide among those.
	var strong *pillar
	for i := range pillars {
		p := &pillars[i]
		if !r.served(p.name) {
			continue
		}
		if slices.Contains(r.kinds, p.strong) && (strong == nil || len(spoken[p.name]) > len(spoken[strong.name])) {
			strong = p
		}
	}
	if strong != nil {
		return strong.name, fmt.Sprintf("there is an artifact of type %s", strong.strong)
	}
	most := 0
	for _, p := range pillars {
		if n := len(spoken[p.name]); n > most && r.served(p.name) {
			name, most = p.name, n
		}
	}
	if most == 0 {
		return usualPillar, "nothing speaks for another"
	}
	found := spoken[name]
	return name, "the text says " + strings.Join(found[:min(5, len(found))], ", ")
}

// served reports whether a candidate is of a pillar: one in which nothing is
// would leave out all that could answer. Where no candidate has a pillar, any will do.
func (r *request) served(pillar string) bool { return len(r.manned) == 0 || r.manned[pillar] }

// chooseFacets returns what the request is about: the facets that the tables
// have for its words, those of the artifacts, and those of the candidates whose
// own words it has.
func (r *request) chooseFacets(text string, candidates []Candidate) []string {
	found := map[string]struct{}{}
	for _, f := range facets {
		if slices.ContainsFunc(f.words, r.says) || f.shape != nil && f.shape.MatchString(text) {
			found[f.name] = struct{}{}
		}
	}
	for _, kind := range r.kinds {
		found["artifact:"+kind] = struct{}{}
	}
	tried := map[string]struct{}{}
	for _, c := range candidates {
		for _, facet := range c.Operation.Facets {
			if _, again := tried[facet]; again {
				continue
			}
			tried[facet] = struct{}{}
			namespace, value, _ := strings.Cut(facet, ":")
			if namespace != "artifact" && utf8.RuneCountInString(value) > 1 && r.says(strings.ToLower(value)) {
				found[facet] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
