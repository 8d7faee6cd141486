package view

import (
	"io"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Quotas shows what was used of each bound.
func Quotas(w, errs io.Writer, uses []host.QuotaUse) error {
	if len(uses) == 0 {
		Say(errs, "no quota holds for you; quotas in mortise.yaml are where they are written")
		return nil
	}
	t := terminal.NewTable(w, "OF", "PERIOD", "USED", "LIMIT", "ENDS")
	for _, use := range uses {
		ends := ""
		if !use.Ends.IsZero() {
			ends = use.Ends.Format(time.RFC3339)
		}
		t.Row(use.Of, use.Period, strconv.FormatInt(use.Used, 10), strconv.FormatInt(use.Limit, 10), terminal.Dash(ends))
	}
	return t.Flush()
}
