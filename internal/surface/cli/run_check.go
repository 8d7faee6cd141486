package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// check refuses flags that cannot be meant.
func (f *runFlags) check(json bool) error {
	switch {
	case f.envelope != "" && !slices.Contains(contract.Names[contract.Enveloper](), f.envelope):
		return usage{fmt.Errorf("--envelope %s: there is %s", f.envelope, strings.Join(contract.Names[contract.Enveloper](), ", "))}
	case f.envelope != "" && !json:
		return usage{errors.New("--envelope goes with --json")}
	case f.wait < 0:
		return usage{fmt.Errorf("--wait %s: it cannot be negative", f.wait)}
	case f.dryRun != "" && f.dryRun != dryAll && f.dryRun != dryReads:
		return usage{fmt.Errorf("--dry-run=%s: there is --dry-run, which asks nothing outside, and --dry-run=%s", f.dryRun, dryReads)}
	case f.dryRun != "" && (f.noWait || f.waits || f.envelope != ""):
		return usage{errors.New("--dry-run does not go with --wait, --no-wait or --envelope: it ends here, and no contract has a place for what it finds")}
	case f.noWait && f.waits:
		return usage{errors.New("--wait and --no-wait: only one of them")}
	}
	for _, label := range f.labels {
		if label != plugin.Untrusted && label != plugin.Private {
			return usage{fmt.Errorf("--label %s: there are %s and %s", label, plugin.Untrusted, plugin.Private)}
		}
	}
	return nil
}
