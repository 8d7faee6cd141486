package editor

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A part is a member of an object or an element of an array: first is where it begins, last where
// it ends. They are one value for an element.
type part struct{ first, last *hujson.Value }

func partsOf(v hujson.ValueTrimmed) (all []part, end *hujson.Extra) {
	switch v := v.(type) {
	case *hujson.Object:
		for i := range v.Members {
			all = append(all, part{&v.Members[i].Name, &v.Members[i].Value})
		}
		return all, &v.AfterExtra
	case *hujson.Array:
		for i := range v.Elements {
			all = append(all, part{&v.Elements[i], &v.Elements[i]})
		}
		return all, &v.AfterExtra
	}
	return nil, nil
}

// cutPart takes one part out of an object or an array. All comments stay: those before it, behind
// it and in it.
func cutPart(v hujson.ValueTrimmed, i int) {
	all, end := partsOf(v)
	kept := sparedOf(all[i])
	switch last := i == len(all)-1; {
	case !last:
		next := all[i+1].first
		next.BeforeExtra = joined(kept, next.BeforeExtra)
	default:
		if comma := all[i].last.AfterExtra != nil; i > 0 {
			before := all[i-1].last
			if !comma {
				kept = joined(hujson.Extra(strings.Join(commentsOf(before.AfterExtra), "\n")), kept)
				before.AfterExtra = nil
			} else if before.AfterExtra == nil {
				before.AfterExtra = hujson.Extra{}
			}
		}
		*end = joined(kept, *end)
		if len(all) == 1 && strings.TrimSpace(string(*end)) == "" {
			*end = nil
		}
	}
	switch v := v.(type) {
	case *hujson.Object:
		v.Members = slices.Delete(v.Members, i, i+1)
	case *hujson.Array:
		v.Elements = slices.Delete(v.Elements, i, i+1)
	}
}

// sparedOf returns the comments of a part, with the space before the first ones; nil for none.
func sparedOf(p part) hujson.Extra {
	var kept hujson.Extra
	if before := p.first.BeforeExtra; len(commentsOf(before)) > 0 {
		kept = hujson.Extra(strings.TrimRight(string(before), " \t\r\n"))
	}
	extras := []hujson.Extra{p.first.AfterExtra, p.last.AfterExtra}
	if p.first != p.last {
		extras = append(extras, p.last.BeforeExtra)
	}
	extras = append(extras, inside(p.last.Value)...)
	for _, extra := range extras {
		for _, comment := range commentsOf(extra) {
			kept = append(kept, "\n"+comment...)
		}
	}
	return kept
}

// inside returns all that stands between the tokens of a value.
func inside(v hujson.ValueTrimmed) (all []hujson.Extra) {
	parts, end := partsOf(v)
	for _, p := range parts {
		all = append(all, p.first.BeforeExtra, p.first.AfterExtra)
		if p.first != p.last {
			all = append(all, p.last.BeforeExtra, p.last.AfterExtra)
		}
		all = append(all, inside(p.last.Value)...)
	}
	if end != nil {
		all = append(all, *end)
	}
	return all
}

// commentsOf returns the comments in what stands between two tokens.
func commentsOf(extra hujson.Extra) (all []string) {
	for text := string(extra); ; {
		text = strings.TrimLeft(text, " \t\r\n")
		if len(text) < 2 {
			return all
		}
		end := "*/"
		if strings.HasPrefix(text, "//") {
			end = "\n"
		}
		comment, rest, _ := strings.Cut(text[2:], end)
		comment = text[:2] + comment
		if end == "*/" {
			comment += end
		}
		all, text = append(all, strings.TrimRight(comment, "\r")), rest
	}
}

// joined returns what was kept and what follows it. A comment that ends with its line does not
// swallow what follows.
func joined(kept, next hujson.Extra) hujson.Extra {
	if len(kept) == 0 {
		return next
	}
	comments := commentsOf(kept)
	if last := comments[len(comments)-1]; strings.HasPrefix(last, "//") && !strings.HasPrefix(strings.TrimLeft(string(next), "\r"), "\n") {
		kept = append(kept, '\n')
	}
	return append(slices.Clone(kept), next...)
}

// replaceValue gives a value another content. The comments in it go before it.
func replaceValue(v *hujson.Value, with hujson.ValueTrimmed) {
	for _, extra := range inside(v.Value) {
		for _, comment := range commentsOf(extra) {
			v.BeforeExtra = append(joined(nil, v.BeforeExtra), " "+comment...)
			v.BeforeExtra = joined(v.BeforeExtra, hujson.Extra(" "))
		}
	}
	v.Value = with
}
