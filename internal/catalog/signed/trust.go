package signed

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// Trust says whose signatures a host believes, and of which plugins.
type Trust struct {
	RequireSigned bool        `yaml:"require_signed" json:"require_signed"` // refuse what no publisher has signed
	Publishers    []Publisher `yaml:"publishers" json:"publishers"`
}

// A Publisher may sign plugins of certain names, which no one else may then bring.
type Publisher struct {
	Name    string   `yaml:"name" json:"name"`
	Plugins []string `yaml:"plugins" json:"plugins"` // names; one that ends in * stands for all that begin so
	Keys    []string `yaml:"keys" json:"keys"`       // public keys of minisign
}

// Check returns what is wrong, for a configuration.
func (t Trust) Check() (errs []error) {
	owner := map[string]string{}
	seen := map[string]bool{}
	for n, p := range t.Publishers {
		at := fmt.Sprintf("plugins.trust.publishers[%d]", n)
		if p.Name == "" || strings.ContainsFunc(p.Name, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }) {
			errs = append(errs, fmt.Errorf("%s.name is %q; it is a word without spaces and slashes", at, p.Name))
		}
		if seen[p.Name] {
			errs = append(errs, fmt.Errorf("%s.name is that of another publisher", at))
		}
		seen[p.Name] = true
		if len(p.Keys) == 0 || len(p.Plugins) == 0 {
			errs = append(errs, fmt.Errorf("%s needs plugins and keys", at))
		}
		for _, pattern := range p.Plugins {
			if pattern == "" || strings.Contains(strings.TrimSuffix(pattern, "*"), "*") {
				errs = append(errs, fmt.Errorf("%s.plugins has %q; it is a name, or the beginning of names and *", at, pattern))
			}
		}
		for _, text := range p.Keys {
			key, err := ParsePublicKey(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s.keys: %s", at, plugin.AsError(err).Message))
			} else if other, taken := owner[key.ID.String()]; taken && other != p.Name {
				errs = append(errs, fmt.Errorf("%s.keys has the key %s, which is that of %s", at, key.ID, other))
			} else {
				owner[key.ID.String()] = p.Name
			}
		}
	}
	return errs
}

// owns reports whether a name is a publisher's to give. Letter case tells no names apart.
func (p Publisher) owns(name string) bool {
	for _, pattern := range p.Plugins {
		begin, all := strings.CutSuffix(strings.ToLower(pattern), "*")
		if folded := strings.ToLower(name); folded == begin || all && strings.HasPrefix(folded, begin) {
			return true
		}
	}
	return false
}

// holds reports whether a key is one of a publisher's.
func (p Publisher) holds(id KeyID) (PublicKey, bool) {
	for _, text := range p.Keys {
		if key, err := ParsePublicKey(text); err == nil && key.ID == id {
			return key, true
		}
	}
	return PublicKey{}, false
}

// A Signer is a publisher and the key that it signed with: acme/0123456789ABCDEF; ""
// stands for no signature that the host believes.
type Signer string

// Publisher is the publisher's name.
func (s Signer) Publisher() string { name, _, _ := strings.Cut(string(s), "/"); return name }

// String is the signer, or that there is none.
func (s Signer) String() string { return cmp.Or(string(s), "unsigned") }

// Verify returns who has signed the content: "" where the key is none that the host
// knows. A signature that does not fit the content is invalid_input.
func (t Trust) Verify(signature []byte, content io.Reader) (Signer, error) {
	s, err := ParseSignature(signature)
	if err != nil {
		return "", err
	}
	for _, p := range t.Publishers {
		key, known := p.holds(s.Key)
		if !known {
			continue
		}
		sum, err := Sum(content)
		if err != nil {
			return "", err
		}
		if !s.Verify(key, sum) {
			return "", refused("the signature with %s's key %s does not fit: the file, or the signature, was changed", p.Name, key.ID)
		}
		return Signer(p.Name + "/" + key.ID.String()), nil
	}
	return "", nil
}

// ErrNotTrusted is wrapped by what [Trust.Admit] refuses.
var ErrNotTrusted = errors.New("no trusted signature")

// Admit says whether a plugin may have its name: one of a publisher's names needs that
// publisher's signature with a key that is still trusted, and where signatures are
// required every name does. What is refused is policy_denied.
func (t Trust) Admit(name string, by Signer) error {
	owners := []string{}
	for _, p := range t.Publishers {
		if !p.owns(name) {
			continue
		}
		owners = append(owners, p.Name)
		for _, text := range p.Keys {
			if key, err := ParsePublicKey(text); err == nil && by == Signer(p.Name+"/"+key.ID.String()) {
				return nil
			}
		}
	}
	switch {
	case len(owners) > 0:
		return denied("%s is for %s to publish (plugins.trust in mortise.yaml), and this is %s", name, strings.Join(owners, " or "), by)
	case t.RequireSigned:
		return denied("this host takes signed plugins only (plugins.trust.require_signed in mortise.yaml), no publisher is trusted for %s, and this is %s", name, by)
	}
	return nil
}

func denied(format string, args ...any) error {
	return &plugin.Error{Code: plugin.CodePolicyDenied, Message: fmt.Sprintf(format, args...), Err: ErrNotTrusted}
}
