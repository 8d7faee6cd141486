package view

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Timeline is what happened when.
var Timeline = List[host.TimelineEvent]{
	Key:    "events",
	Titles: []string{"TIME", "ZONE", "WHERE", "TOLD BY", "WHAT"},
	None:   "nothing in this session tells of a time, or nothing that was asked for",
	Row: func(e host.TimelineEvent) []string {
		return []string{timelineTime(e), e.Zone, e.Name + placeOf(e), terminal.Dash(strings.Join(e.Tools, " ")), terminal.OneLine(e.Text, 100)}
	},
}

// timelineTime is an event's time in UTC, with a mark where its year is not its own.
func timelineTime(e host.TimelineEvent) string {
	text := e.Time.UTC().Format("2006-01-02T15:04:05.999Z")
	if e.Year != "said" {
		text += " (year " + e.Year + ")"
	}
	return text
}

// placeOf is where in its artifact an event stands.
func placeOf(e host.TimelineEvent) string {
	var parts []string
	if e.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", e.Line))
	}
	if e.Frame > 0 {
		parts = append(parts, fmt.Sprintf("frame %d", e.Frame))
	}
	if e.Offset >= 0 {
		parts = append(parts, fmt.Sprintf("byte %d", e.Offset))
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, ", ")
}

// TimelineCSV writes events as CSV with a header. A cell that a spreadsheet would take for a
// formula begins with an apostrophe.
func TimelineCSV(w io.Writer, events []host.TimelineEvent) error {
	out := csv.NewWriter(w)
	failed := out.Write([]string{"time", "zone", "year", "artifact", "name", "sha256", "line", "frame", "offset", "source_tools", "text"})
	for _, e := range events {
		cells := []string{
			e.Time.UTC().Format("2006-01-02T15:04:05.999999999Z"), e.Zone, e.Year, e.Artifact, e.Name, e.SHA256,
			counted(e.Line), counted(e.Frame), "", strings.Join(e.Tools, " "), e.Text,
		}
		if e.Offset >= 0 {
			cells[8] = strconv.FormatInt(e.Offset, 10)
		}
		for i, cell := range cells {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				cells[i] = "'" + cell
			}
		}
		failed = errors.Join(failed, out.Write(cells))
	}
	out.Flush()
	return errors.Join(failed, out.Error())
}

func counted(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
