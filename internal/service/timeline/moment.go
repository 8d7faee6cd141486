package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/service/session"
)

// A moment is a time as it was written.
type moment struct {
	time.Time
	zone string // UTC, +02:00, or unsaidZone
	year string // said, given or assumed
}

var (
	isoTime    = pattern.New(`^(\d{4})-(\d\d)-(\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|UTC|[+-]\d\d:?\d\d)?`)
	shortTime  = pattern.New(`^(\d\d)-(\d\d)T(\d\d:\d\d:\d\d)`)                  // of a tool that knows no year
	syslogTime = pattern.New(`^([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)`) // RFC 3164
	accessTime = pattern.New(`\[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})\]`)
	leapSecond = pattern.New(`(\d\d:\d\d:)60`)
	priority   = pattern.New(`^<\d{1,3}>(?:1 )?`)
)

// timeOf reads the time that text begins with, or that an access log has in brackets.
func (g *gathering) timeOf(a session.Artifact, text string) (moment, bool) {
	text = strings.TrimLeft(priority.ReplaceAllString(strings.TrimPrefix(text, "\ufeff"), ""), "[\"")
	if m := isoTime.FindStringSubmatch(text); m != nil {
		fraction := ""
		if m[5] != "" {
			fraction = "." + m[5]
		}
		return parsed("2006-01-02 15:04:05", m[1]+"-"+m[2]+"-"+m[3]+" "+m[4]+fraction, m[6], "said")
	}
	if m := shortTime.FindStringSubmatch(text); m != nil {
		year, how := g.yearOf(a, m[1] == "02" && m[2] == "29")
		return parsed("2006-01-02 15:04:05", year+"-"+m[1]+"-"+m[2]+" "+m[3], "", how)
	}
	if m := syslogTime.FindStringSubmatch(text); m != nil {
		year, how := g.yearOf(a, m[1] == "Feb" && m[2] == "29")
		return parsed("2006 Jan 2 15:04:05", year+" "+m[1]+" "+m[2]+" "+m[3], "", how)
	}
	if m := accessTime.FindStringSubmatch(text); m != nil {
		return parsed("2006 Jan 2 15:04:05", m[3]+" "+m[2]+" "+m[1]+" "+m[4], m[5], "said")
	}
	return moment{}, false
}

// yearOf returns the year of a time that has none, and how it is known: the one that the filter
// gives, or else that in which the artifact was registered. A 29 February that this year lacks is
// taken for the last one before.
func (g *gathering) yearOf(a session.Artifact, leapDay bool) (year, how string) {
	n, how := a.CreatedAt.UTC().Year(), "assumed"
	if g.filter.Year != 0 {
		n, how = g.filter.Year, "given"
	}
	for leapDay && time.Date(n, time.February, 29, 0, 0, 0, 0, time.UTC).Month() != time.February {
		n, how = n-1, "assumed"
	}
	return fmt.Sprintf("%04d", n), how
}

// parsed reads a time of a form, in a zone; none is taken as UTC, and said to be unknown.
func parsed(form, text, zone, year string) (moment, bool) {
	usual := leapSecond.ReplaceAllString(text, "${1}59") // time.Time has no leap seconds
	at, err := time.Parse(form, usual)
	if err != nil {
		return moment{}, false // there is no such day, or hour
	}
	if usual != text {
		at = at.Add(time.Second)
	}
	switch {
	case zone == "":
		return moment{at, unsaidZone, year}, true
	case zone == "Z" || zone == "UTC":
		return moment{at, "UTC", year}, true
	}
	zone = strings.Replace(zone, ":", "", 1)
	off, err := time.Parse("-0700", zone)
	if err != nil {
		return moment{}, false
	}
	_, seconds := off.Zone()
	return moment{at.Add(-time.Duration(seconds) * time.Second), zone[:3] + ":" + zone[3:], year}, true
}
