package account

import (
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// about are scopes that say how one is known, and not what may be done.
var about = []string{"openid", "offline_access"}

// lacking returns what of the asked scopes was not granted.
func (p *Provider) lacking(granted, asked []string) []string {
	var lack []string
	for _, scope := range asked {
		if !slices.Contains(about, scope) && !slices.ContainsFunc(granted, func(has string) bool { return p.covers(has, scope) }) {
			lack = append(lack, scope)
		}
	}
	return lack
}

// covers reports whether a granted scope is the asked one or more, in the
// provider's own way of writing them.
func (p *Provider) covers(has, asked string) bool {
	switch p.Kind {
	case Google:
		const long = "https://www.googleapis.com/auth/userinfo."
		return strings.TrimPrefix(has, long) == strings.TrimPrefix(asked, long)
	case Microsoft:
		const long = "https://graph.microsoft.com/"
		return strings.EqualFold(strings.TrimPrefix(has, long), strings.TrimPrefix(asked, long))
	case GitHub: // repo has repo:status in it, write:packages has read:packages
		level, what, leveled := strings.Cut(asked, ":")
		hasLevel, hasWhat, _ := strings.Cut(has, ":")
		return has == asked || leveled && has == level || leveled && what == hasWhat && rank(hasLevel) > rank(level) && rank(level) > 0 ||
			has == "repo" && asked == "public_repo" || has == "user" && asked == "read:user"
	}
	return has == asked
}

// rank orders the levels of GitHub's scopes.
func rank(level string) int { return 1 + slices.Index([]string{"read", "write", "admin"}, level) }

// asked returns the scopes to ask a provider for.
func (p *Provider) asked(e *endpoints, scopes ...[]string) []string {
	var all []string
	switch {
	case e.verifier == nil: // OAuth 2 alone
	case p.Kind == Microsoft || p.Kind == OIDC && e.offline:
		all = []string{"openid", "email", "offline_access"}
	default:
		all = []string{"openid", "email"}
	}
	for _, scope := range slices.Concat(append([][]string{p.Scopes}, scopes...)...) {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// granted returns the scopes of a token: what its provider says or, where that
// says nothing, what was asked for (RFC 6749, 5.1).
func granted(t *oauth2.Token, asked []string) []string {
	text, _ := t.Extra("scope").(string)
	if text == "" {
		return asked
	}
	all := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	slices.Sort(all)
	return slices.Compact(all)
}
