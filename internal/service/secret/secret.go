// Package secret keeps values that plugins need and no person or log may read:
// encrypted in the store, under keys that are themselves encrypted with a master key
// which is kept elsewhere.
//
// A [Vault] keeps and finds secrets. It reports each value that it gives out to a
// [Scrubber], which removes the value from everything that the host says or writes
// afterwards. A plugin that was given a secret can still disclose it in an encoding
// that the scrubber does not know.
package secret

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/plugin"
)

// The scopes in which a secret is kept.
const (
	User   = "user"   // of one principal
	System = "system" // of everybody in a tenant
)

// Own, as the scope of a need, is the user's before the system's, of those alone
// that were set for the plugin by its name.
const Own = "own"

// Anyone in place of a plugin's name is a secret for all plugins.
const Anyone = "*"

// Bounds of a secret.
const (
	MaxName  = 128      // bytes
	MaxValue = 64 << 10 // bytes
)

// A Need is one secret that an operation reads.
type Need struct {
	Tenant  string
	Plugin  string
	Subject string // whose call it is
	Name    string
	Scope   string // user, system, system_or_user or own
}

// places returns where the secret may be, the first that is there counts: the
// user's before the system's, the plugin's own before one for all.
func (n Need) places() []Name {
	var all []Name
	add := func(scope, subject string) {
		for _, owner := range []string{n.Plugin, Anyone} {
			if owner == Anyone && n.Scope == Own {
				continue
			}
			all = append(all, Name{Tenant: n.Tenant, Owner: owner, Scope: scope, Subject: subject, Name: n.Name})
		}
	}
	if n.Scope != plugin.SecretOfSystem && n.Subject != "" {
		add(User, n.Subject)
	}
	if n.Scope != plugin.SecretOfUser {
		add(System, "")
	}
	return all
}

// Subject names a principal as secrets have it.
func Subject(p plugin.Principal) string {
	if p.ID == "" {
		return ""
	}
	kind := p.Type
	if kind == "" {
		kind = "user"
	}
	return kind + "::" + p.ID
}

// A Value is a secret with the labels of the call that set it. One that a person
// set has none.
type Value struct {
	Text   string
	Labels []string
}

// An Info is what may be seen of a secret.
type Info struct {
	Name      string    `json:"name"`
	Plugin    string    `json:"plugin"` // * for all
	Scope     string    `json:"scope"`
	Subject   string    `json:"subject"` // "" for the system
	UpdatedAt time.Time `json:"updated_at"`

	// Labels are those of the call that set it. They are left out where the master
	// key is not at hand.
	Labels []string `json:"labels,omitempty"`
}

func infoOf(r *secretRow) Info {
	return Info{Name: r.Name, Plugin: r.Owner, Scope: r.Scope, Subject: r.Subject, UpdatedAt: r.UpdatedAt}
}

// check refuses what cannot be kept.
func check(n Name, value string) error {
	if n.Name == "" || len(n.Name) > MaxName || !utf8.ValidString(n.Name) || strings.ContainsFunc(n.Name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }) {
		return plugin.Errorf(plugin.CodeInvalidInput, "%.200q is no name of a secret: it is one word of 1 to %d bytes", n.Name, MaxName)
	}
	switch {
	case value == "":
		return plugin.Errorf(plugin.CodeInvalidInput, "the secret %s is empty; 'mortise secrets delete' takes one away", n.Name)
	case len(value) > MaxValue:
		return plugin.Errorf(plugin.CodeInputTooLarge, "the secret %s has %d bytes; at most %d are kept", n.Name, len(value), MaxValue)
	case !utf8.ValidString(value):
		return plugin.Errorf(plugin.CodeInvalidInput, "the secret %s is not UTF-8 text; encode it, for example as base64", n.Name)
	}
	return nil
}
