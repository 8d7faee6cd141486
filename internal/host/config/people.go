package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mortise-dev/mortise/internal/core/policy"
)

// maxWait is the longest that a call may wait for a person.
const maxWait = Duration(366 * 24 * time.Hour)

// checkPeople refuses what cannot be meant of the people that the configuration
// names, and of how they are asked.
func (c *Config) checkPeople() (errs []error) {
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	named := func(key string, names []string) {
		for _, name := range names {
			if why := policy.WrongName(name); why != "" {
				refuse("%s: %s", key, why)
			} else if !member(name) {
				refuse("%s: %q is no principal; write a user's id, service::id or agent::id (ids that begin with %s are those of senders without a link)", key, name, SenderPrefix)
			}
		}
	}
	for key, lists := range map[string]map[string][]string{"policy.groups": c.Policy.Groups, "policy.roles": c.Policy.Roles} {
		for _, name := range slices.Sorted(maps.Keys(lists)) {
			named(key+"."+name, lists[name])
		}
	}
	for _, who := range slices.Sorted(maps.Keys(c.Policy.Consent)) {
		named("policy.consent", []string{who})
		for _, effect := range c.Policy.Consent[who] {
			if effect == "" || strings.ContainsFunc(effect, unicode.IsSpace) {
				refuse("policy.consent.%s: %q is no effect; write its name, as in gmail_send", who, effect)
			}
		}
	}
	named("policy.configure", c.Policy.Configure)
	named("quotas.principals", slices.Sorted(maps.Keys(c.Quotas.Principals)))
	named("approvals.by", c.Approvals.By)
	for _, name := range c.Approvals.By {
		if strings.HasPrefix(name, "agent::") {
			refuse("approvals.by: %s is an agent, and agents approve nothing", name)
		}
	}
	if c.Approvals.Expire <= 0 || c.Approvals.Expire > maxWait {
		refuse("approvals.expire is %s; it is more than 0s and at most %s", time.Duration(c.Approvals.Expire), time.Duration(maxWait))
	}
	if len(c.Approvals.Notify) > 0 && strings.TrimSpace(c.Approvals.Notify[0]) == "" {
		refuse("approvals.notify: the program has no name")
	}
	return errs
}

// SenderPrefix begins the id of a principal that stands for a sender of a channel
// whom no link names. No principal of the configuration has such an id, so that no
// sender becomes one by what they and their channel are called.
const SenderPrefix = "sender:"

// member reports whether name can be a principal's: an id, with its type before
// it where that is not user.
func member(name string) bool {
	id := name
	if kind, rest, typed := strings.Cut(name, "::"); typed {
		if kind != "service" && kind != "agent" && kind != "user" {
			return false
		}
		id = rest
	}
	if len(id) >= len(SenderPrefix) && strings.EqualFold(id[:len(SenderPrefix)], SenderPrefix) {
		return false
	}
	return id != "" && len(id) <= 255 && !strings.Contains(id, "::") && strings.TrimSpace(id) == id && !strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
}
