package server

import (
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/surface/machine"
)

// machines returns what verifies the tokens of programs that a configuration knows.
func machines(c config.Server) (*machine.Verifier, error) {
	if len(c.Machines) == 0 {
		return nil, nil
	}
	var issuers []machine.Issuer
	for _, m := range c.Machines {
		one := machine.Issuer{Issuer: m.Issuer, Algorithms: m.Algorithms, MaxLife: time.Duration(m.MaxLife), GroupsClaim: m.GroupsClaim, Groups: m.Groups}
		for _, rule := range m.Allow {
			one.Rules = append(one.Rules, machine.Rule(rule))
		}
		issuers = append(issuers, one)
	}
	return machine.New(c.Base(""), issuers)
}
