package terminal

import (
	"fmt"
	"strings"
	"time"
)

// Clock shows a time in the reader's own zone.
func Clock(t time.Time) string { return t.Local().Format(time.DateTime) }

// Short shows a duration in its largest unit.
func Short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Milliseconds shows a number of milliseconds; any other value as a dash.
func Milliseconds(v any) string {
	f, ok := v.(float64)
	switch {
	case !ok:
		return "-"
	case f < 10:
		return fmt.Sprintf("%.2f ms", f)
	case f < 1000:
		return fmt.Sprintf("%.0f ms", f)
	default:
		return fmt.Sprintf("%.1f s", f/1000)
	}
}

// Bytes shows a size.
func Bytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// amount shows how much of a unit there is.
func amount(n float64, unit string) string {
	if unit == "bytes" && n >= 1<<20 {
		return fmt.Sprintf("%.0f MiB", n/(1<<20))
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %s", n, unit))
}
