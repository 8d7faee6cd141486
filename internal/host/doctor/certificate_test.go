package doctor

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

func TestUntilWhenACertificateLasts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, c := range []struct {
		from, until time.Duration
		says, wrong string
	}{
		{-day, 90 * day, "until 2026-05-30T12:00:00Z, 90 days", ""},
		{-day, 13 * day, "", "it expires at 2026-03-14T12:00:00Z"},
		{-day, -time.Second, "", "it expired at 2026-03-01T11:59:59Z"},
		{time.Hour, 90 * day, "", "it is not valid before 2026-03-01T13:00:00Z"},
	} {
		says, err := lasts(&x509.Certificate{NotBefore: now.Add(c.from), NotAfter: now.Add(c.until)}, now)
		if says != c.says || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("from %s until %s: %q, %v", c.from, c.until, says, err)
		}
	}
	if _, err := lasts(nil, now); err == nil {
		t.Error("a certificate that cannot be read is fine")
	}
}
