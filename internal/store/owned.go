package store

import "github.com/mortise-dev/mortise/plugin"

// A Kind is what principals have of which there is a most.
type Kind string

// The kinds, each with what stands for its owner in [Reader]'s Owned.
const (
	OwnedSessions  Kind = "open sessions"   // owner, as the configuration names them
	OwnedFeeds     Kind = "feeds"           // the type and the id of the owner
	OwnedKnowledge Kind = "knowledge bases" // who created it, as the configuration names them
	OwnedSecrets   Kind = "secrets"         // scope and subject
)

// Most returns budget_exceeded where n is as many of a kind as a principal may have; 0 is any
// number.
func (k Kind) Most(n, most int, key string) error {
	if most == 0 || n < most {
		return nil
	}
	return plugin.Errorf(plugin.CodeBudgetExceeded, "there are %d %s, which is as many as a principal may have: take one away that is not needed; %s in mortise.yaml says how many", most, k, key)
}
