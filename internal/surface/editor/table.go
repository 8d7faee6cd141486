package editor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A table is a configuration in TOML, whose servers are tables below one. Only whole tables are
// written and removed, by their headers; everything else is left as it is.
type table struct{ of string }

func (t table) put(text []byte, e Entry) ([]byte, error) {
	rest, err := t.remove(text, e.Name)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Write(rest)
	if b.Len() > 0 {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	quoted := make([]string, len(e.Args))
	for i, arg := range e.Args {
		quoted[i] = quote(arg)
	}
	fmt.Fprintf(&b, "[%s]\ncommand = %s\nargs = [%s]\n", t.header(e.Name), quote(e.Command), strings.Join(quoted, ", "))
	if len(e.Env) > 0 {
		fmt.Fprintf(&b, "\n[%s.env]\n", t.header(e.Name))
		for _, name := range slices.Sorted(maps.Keys(e.Env)) {
			fmt.Fprintf(&b, "%s = %s\n", name, quote(e.Env[name]))
		}
	}
	return []byte(b.String()), nil
}

func (t table) header(name string) string { return t.of + "." + name }

// errMultiline is of a text in which a header may be none.
var errMultiline = errors.New(`it has a text of several lines (""" or '''), in which headers of tables cannot be told from its words: add the entry by hand`)

func (t table) remove(text []byte, name string) ([]byte, error) {
	all := string(text)
	if strings.Contains(all, `"""`) || strings.Contains(all, "'''") {
		return nil, errMultiline
	}
	own := t.header(name)
	var kept strings.Builder
	inside := false
	for line := range strings.Lines(all) {
		if header, is := headerOf(line); is {
			was := inside
			inside = header == own || strings.HasPrefix(header, own+".")
			if inside && !was { // with the empty line that put wrote before it
				before, found := strings.CutSuffix(kept.String(), "\n\n")
				if found {
					kept.Reset()
					kept.WriteString(before + "\n")
				}
			}
			if was && !inside && kept.Len() > 0 {
				kept.WriteString("\n")
			}
		} else if key, _, is := strings.Cut(line, "="); is && strings.HasPrefix(bare(key), own+".") {
			return nil, fmt.Errorf("it has %s as keys with dots and not as a table: change it by hand", own)
		}
		if !inside {
			kept.WriteString(line)
		}
	}
	return []byte(kept.String()), nil
}

// headerOf returns the name of the table that a line begins.
func headerOf(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") {
		return "", false
	}
	name, _, closed := strings.Cut(strings.TrimPrefix(line, "["), "]")
	return bare(name), closed
}

// bare is a key without the spaces and quotes that mean nothing.
func bare(key string) string {
	return strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(key)
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
