package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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

// amount shows how much of a unit there is, as the number is spelled.
func amount(n jsontext.Value, unit string) string {
	if size := number(n); unit == "bytes" && size >= 1<<20 {
		return fmt.Sprintf("%.0f MiB", size/(1<<20))
	}
	return strings.TrimSpace(string(n) + " " + unit)
}

// number returns what a JSON number is about; 0 if the value is none.
func number(value jsontext.Value) float64 {
	if value.Kind() != '0' {
		return 0
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0
	}
	return n
}
