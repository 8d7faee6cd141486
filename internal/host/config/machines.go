package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Machine is an identity provider whose signed tokens programs present in place of an API
// token: of a system that builds software, say, or of a cloud.
type Machine struct {
	Name       string   `yaml:"name" json:"name"`
	Issuer     string   `yaml:"issuer" json:"issuer"`                   // as its tokens have it, and by which its keys are discovered
	Algorithms []string `yaml:"algorithms" json:"algorithms,omitempty"` // by which they may be signed; RS256 and ES256 where none is written
	MaxLife    Duration `yaml:"max_life" json:"max_life,omitempty"`     // from their making to their end, at most; an hour where it is not written

	GroupsClaim string              `yaml:"groups_claim" json:"groups_claim,omitempty"` // the claim that has groups
	Groups      map[string][]string `yaml:"groups" json:"groups,omitempty"`             // what it may say, with the groups of policy.groups that this gives

	Allow []MachineRule `yaml:"allow" json:"allow"` // who they are; a token that none or two of these fit is refused
}

// A MachineRule makes the holder of a token a principal.
type MachineRule struct {
	Principal  string            `yaml:"principal" json:"principal"`
	Claims     map[string]string `yaml:"claims" json:"claims"`         // each of them exactly as the token has it
	Scopes     []string          `yaml:"scopes" json:"scopes"`         // as of API tokens; read where none is written
	Operations []string          `yaml:"operations" json:"operations"` // plugin/operation or plugin/*; all where none is written
}

// Bounds of what is written of machines.
const (
	maxMachines = 8
	maxRules    = 256
	maxClaims   = 16
	maxLife     = Duration(24 * time.Hour)
	maxMapped   = 256 // groups of a provider
)

// algorithms are those by which a token may be signed: with a key that the provider alone has.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// described are claims by which a provider describes an account. The same account can get
// others, and another account these.
var described = []string{"email", "email_verified", "name", "nickname", "preferred_username", "given_name", "family_name", "phone_number", "upn", "unique_name"}

// checkMachines refuses what no machine can be. owner is the principal of the configuration.
func (s Server) checkMachines(owner string, groups map[string][]string) (errs []error) {
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(s.Machines) > maxMachines {
		refuse("server.machines: there are %d; at most %d are kept", len(s.Machines), maxMachines)
	}
	if len(s.Machines) > 0 && s.PublicURL == "" {
		refuse("server.machines: public_url is not written; it is the audience that tokens are made for")
	}
	var names, issuers []string
	for _, m := range s.Machines {
		if !providerName.MatchString(m.Name) || slices.Contains(names, m.Name) {
			refuse("server.machines: %.100q is no name of its own: lower-case letters, digits, _, . and -", m.Name)
		}
		if !privateURL(m.Issuer) || slices.Contains(issuers, m.Issuer) {
			refuse("server.machines, %.100s: issuer is %.200q; it is an https address, or one of this machine, and of one entry", m.Name, m.Issuer)
		}
		names, issuers = append(names, m.Name), append(issuers, m.Issuer)
		for _, algorithm := range m.Algorithms {
			if !slices.Contains(algorithms, algorithm) {
				refuse("server.machines, %.100s: tokens are not signed by %.50q here; there are %s", m.Name, algorithm, strings.Join(algorithms, ", "))
			}
		}
		if m.MaxLife < 0 || m.MaxLife > maxLife {
			refuse("server.machines, %.100s: max_life is %s; it is at most %s", m.Name, time.Duration(m.MaxLife), time.Duration(maxLife))
		}
		for _, problem := range mappedGroups(m.GroupsClaim, m.Groups, groups) {
			refuse("server.machines, %.100s: %s", m.Name, problem)
		}
		if len(m.Allow) == 0 || len(m.Allow) > maxRules {
			refuse("server.machines, %.100s: allow has %d entries; it has 1 to %d", m.Name, len(m.Allow), maxRules)
		}
		for _, rule := range m.Allow {
			for _, problem := range rule.problems(owner) {
				refuse("server.machines, %.100s: %s", m.Name, problem)
			}
		}
	}
	return errs
}

// problems are what cannot be meant by a rule.
func (r MachineRule) problems(owner string) (problems []string) {
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case !member(r.Principal):
		refuse("%.255q is no principal; write a user's id or service::id", r.Principal)
	case strings.HasPrefix(r.Principal, "agent::"):
		refuse("%.255s is an agent, which acts through this host alone", r.Principal)
	case strings.TrimPrefix(r.Principal, "user::") == strings.TrimPrefix(owner, "user::"):
		refuse("%.255s is the administrator, whom no token of a provider makes", r.Principal)
	}
	if len(r.Claims) == 0 || len(r.Claims) > maxClaims {
		refuse("%.255s: claims has %d entries; it has 1 to %d", r.Principal, len(r.Claims), maxClaims)
	}
	for _, claim := range slices.Sorted(maps.Keys(r.Claims)) {
		if slices.Contains(described, claim) {
			refuse("%.255s: %s is what the provider says of an account, and can become another's; write sub", r.Principal, claim)
		}
		if claim == "" || len(claim) > 200 || r.Claims[claim] == "" || len(r.Claims[claim]) > 1024 {
			refuse("%.255s: the claim %.200q has a name, and text of 1 to 1024 bytes", r.Principal, claim)
		}
	}
	return problems
}

// mappedGroups says what is wrong with the groups that a claim gives: each is one that the
// configuration names, so that policies may speak of it.
func mappedGroups(claim string, mapped, known map[string][]string) (problems []string) {
	if (claim == "") != (len(mapped) == 0) {
		problems = append(problems, "groups_claim and groups go together")
	}
	if len(mapped) > maxMapped || len(claim) > 200 {
		problems = append(problems, fmt.Sprintf("groups has at most %d entries, and the name of a claim 200 bytes", maxMapped))
	}
	for _, said := range slices.Sorted(maps.Keys(mapped)) {
		if said == "" || len(said) > 256 || len(mapped[said]) == 0 {
			problems = append(problems, fmt.Sprintf("groups: %.200q has a name of 1 to 256 bytes, and groups that it gives", said))
		}
		for _, group := range mapped[said] {
			if _, found := known[group]; !found {
				problems = append(problems, fmt.Sprintf("groups.%.200s: policy.groups has no %.200q", said, group))
			}
		}
	}
	return problems
}
