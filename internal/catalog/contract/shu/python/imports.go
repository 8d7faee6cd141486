package python

import "strings"

// An Import is one module, or one name of a module, that a file imports.
type Import struct {
	Name         string // dotted: urllib.request, or urllib.* for all of it
	Line, Column int
}

// A Scan is what a file imports, and which addresses stand in its texts.
type Scan struct {
	Imports   []Import // but for those of the file's own package (from . import x)
	Addresses []string // texts that begin with http:// or https://, each once
}

// Imports returns what a file imports, anywhere in it: in functions, behind
// conditions, in the fields of strings. Comments and texts do not count.
func Imports(code []byte) (Scan, error) {
	s, err := tokens(code)
	if err != nil {
		return Scan{}, err
	}
	var found Scan
	seen, open := map[string]bool{}, false
	for i, t := range s.tokens {
		ofFrom := open // nothing but words and dots stand between here and a from
		open = t.kind == word && (t.text == "from" || open) || t.kind == op && t.text == "." && open
		switch {
		case t.kind == text:
			if address := s.address(t); address != "" && !seen[address] {
				seen[address] = true
				found.Addresses = append(found.Addresses, address)
			}
		case t.kind != word:
		case t.text == "from":
			found.Imports = append(found.Imports, s.from(i)...)
		case t.text == "import" && !ofFrom:
			found.Imports = append(found.Imports, s.imported(i)...)
		case t.text == "__import__" || t.text == "import_module":
			found.Imports = append(found.Imports, s.called(i)...)
		}
	}
	return found, nil
}

// address returns the text of a token that begins like an address.
func (s *source) address(t token) string {
	begin := t.text
	if t.bytes || !strings.HasPrefix(begin, "http://") && !strings.HasPrefix(begin, "https://") || strings.Contains(begin, `\`) {
		return ""
	}
	return begin
}

// is reports whether the token at i is op or keyword said.
func (s *source) is(i int, k kind, said string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == k && s.tokens[i].text == said
}

// dotted reads a.b.c from the token at i on, and returns where it ends.
func (s *source) dotted(i int) (name string, next int) {
	var parts []string
	for s.tokens[i].kind == word && s.tokens[i].text != "import" && s.tokens[i].text != "from" {
		parts = append(parts, s.tokens[i].text)
		if i++; !s.is(i, op, ".") {
			break
		}
		i++
	}
	return strings.Join(parts, "."), i
}

func (s *source) found(name string, at int) Import {
	line, column := s.place(s.tokens[at].at)
	return Import{name, line, column}
}

// module reads what stands between from and import: relative is a module of
// the file's own package.
func (s *source) module(i int) (name string, relative bool, next int) {
	for s.is(i, op, ".") {
		relative = true
		i++
	}
	name, i = s.dotted(i)
	return name, relative, i
}

// from reads the statement `from module import a, b as c`, if from begins one:
// it stands in `yield from` and `raise ... from` too.
func (s *source) from(i int) []Import {
	module, relative, next := s.module(i + 1)
	if !s.is(next, word, "import") || relative || module == "" {
		return nil
	}
	var found []Import
	next++
	if s.is(next, op, "(") {
		next++
	}
	for {
		switch t := s.tokens[next]; {
		case t.kind == word:
			found = append(found, s.found(module+"."+t.text, i))
		case t.kind == op && t.text == "*":
			found = append(found, s.found(module+".*", i))
		default:
			return found
		}
		next++
		if s.is(next, word, "as") {
			next += 2
		}
		if next >= len(s.tokens) || !s.is(next, op, ",") {
			return found
		}
		next++
	}
}

// imported reads the statement `import a, b.c as d`.
func (s *source) imported(i int) []Import {
	var found []Import
	for next := i + 1; ; next++ {
		if s.tokens[next].kind != word {
			return found
		}
		var name string
		if name, next = s.dotted(next); name == "" {
			return found
		}
		found = append(found, s.found(name, i))
		if s.is(next, word, "as") {
			next = min(next+2, len(s.tokens)-1)
		}
		if !s.is(next, op, ",") {
			return found
		}
	}
}

// called reads `__import__("name")`, and import_module alike. Of a name that is computed nothing is known.
func (s *source) called(i int) []Import {
	next := i + 1
	for s.is(next, op, ")") { // (__import__)("name")
		next++
	}
	if !s.is(next, op, "(") {
		return nil
	}
	for next++; s.is(next, op, "("); next++ {
	}
	if s.is(next, word, "name") && s.is(next+1, op, "=") {
		next += 2
	}
	var b strings.Builder
	for ; s.tokens[next].kind == text && !s.tokens[next].pieces; next++ {
		if s.unescape(&b, s.tokens[next]) != nil {
			return nil
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return []Import{s.found(b.String(), i)}
}
