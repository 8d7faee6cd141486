package doctor

import (
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/host/setup"
)

// backups says whether the scheduled backups are written in time. There is no finding if none
// are scheduled.
func (e *examination) backups() {
	c, at, err := setup.ReadConfig(e.Home, e.Config)
	if err != nil || c.Backups.Schedule == "" {
		return
	}
	st, err := archive.Series{Home: e.Home, Config: at, Settings: c.Backups}.Status(time.Now())
	detail := "none yet"
	if len(st.Backups) > 0 {
		detail = fmt.Sprintf("%d, the newest %s; next %s", len(st.Backups), st.Backups[0].File, st.Next.UTC().Format(time.RFC3339))
	}
	switch {
	case err != nil:
	case st.Failed != nil:
		err = fmt.Errorf("the attempt of %s failed: %s", st.Failed.At.Format(time.RFC3339), st.Failed.Message)
	case st.Overdue:
		err = fmt.Errorf("overdue since %s: no host that serves wrote one; %s", st.Next.UTC().Format(time.RFC3339), detail)
	}
	e.add("scheduled backups", false, err, detail)
}
