// Package all registers the contracts that the host has.
package all

import (
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/eventmill"
	"github.com/mortise-dev/mortise/internal/catalog/contract/kernel"
	"github.com/mortise-dev/mortise/internal/catalog/contract/native"
	"github.com/mortise-dev/mortise/internal/catalog/contract/openhermit"
	"github.com/mortise-dev/mortise/internal/catalog/contract/runtime"
	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
)

// A manifest is read by the first contract that recognizes it: a type says more
// than operations do, and openhermit takes what no other does.
func init() {
	contract.Register(
		eventmill.Contract{},
		kernel.Contract{},
		native.Contract{},
		shu.Contract{},
		openhermit.Contract{},
		runtime.Contract{},
	)
}
