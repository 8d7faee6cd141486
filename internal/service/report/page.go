package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/service/timeline"
)

// A page is a report as it is read. Every text that is handed to one is hostile.
type page interface {
	begin(title string)
	heading(level int, text string)
	paragraph(text string)
	item(text string, beneath ...string)
	end(data string)
	bytes() []byte
}

// Formats are those in which a report is written.
var Formats = []string{"md", "html"}

// Write returns a report in a format, with its data in the last lines. The same report is
// always the same bytes. The format is one of Formats.
func (r Report) Write(format string) ([]byte, error) {
	data, err := encoded(r)
	if err != nil {
		return nil, err
	}
	var p page = &markdown{}
	if format == "html" {
		p = &html{}
	}
	r.draw(p)
	p.end(data)
	return p.bytes(), nil
}

func (r Report) draw(p page) {
	p.begin("Report of session " + orNone(r.Session.Name))
	p.paragraph(fmt.Sprintf("Session %s of %s, pillar %s. As it was at %s, %s.", r.Session.ID, orNone(r.Session.Owner),
		orNone(r.Session.Pillar), clock(r.At), r.Until.words()))
	if len(r.Session.Labels) > 0 {
		p.paragraph(labelled("The session", r.Session.Labels))
	}
	p.paragraph("Statements are the words of the tools, and quotes those of the artifacts; the host vouches for where each stands. " +
		"mortise sessions report --verify FILE works all of it out again.")
	for _, note := range r.Notes {
		p.paragraph("Left out: " + note)
	}
	r.drawArtifacts(p)
	r.drawCalls(p)
	r.drawFindings(p)
	p.heading(2, "Appendix: the timeline")
	if len(r.Events) == 0 {
		p.paragraph("Nothing in this session tells of a time.")
	}
	for _, e := range r.Events {
		p.item(fmt.Sprintf("%s (zone %s, year %s): %s", clock(e.Time), e.Zone, e.Year, e.Text),
			fmt.Sprintf("%s, told by %s", cited(placeOf(e)), orNone(strings.Join(e.Tools, ", "))))
	}
	p.heading(2, "Data")
	p.paragraph("What is above, as it is verified. The report ends with it.")
}

func (r Report) drawArtifacts(p page) {
	p.heading(2, "Artifacts")
	for _, a := range r.Artifacts {
		from := "a person's file"
		if a.Tool != "" {
			from = "made by " + a.Tool + ", call " + a.Call
		}
		beneath := []string{"sha256 " + a.SHA256}
		if len(a.Labels) > 0 {
			beneath = append(beneath, labelled("It", a.Labels))
		}
		p.item(fmt.Sprintf("%s, %s (%s, %d bytes): %s", a.ID, a.Name, a.Type, a.Size, from), beneath...)
	}
}

func (r Report) drawCalls(p page) {
	p.heading(2, "What was run")
	if len(r.Calls) == 0 {
		p.paragraph("Nothing that the ledger has.")
	}
	for _, c := range r.Calls {
		who := c.Principal
		if c.By != "" {
			who = c.By + " on behalf of " + c.Principal
		}
		beneath := []string{fmt.Sprintf("call %s, %s, by %s, from %s", c.ID, clock(c.At), who, orNone(c.Origin)), inLedger(c.Entry)}
		if c.Code != "" {
			beneath = append(beneath, c.Code+": "+c.Message)
		}
		beneath = append(beneath, fmt.Sprintf("input %s, result %s, package %s", orNone(c.InputHash), orNone(c.ResultHash), orNone(c.Package)))
		if len(c.Artifacts) > 0 {
			beneath = append(beneath, "registered "+strings.Join(c.Artifacts, ", "))
		}
		if len(c.Labels) > 0 {
			beneath = append(beneath, labelled("Its result", c.Labels))
		}
		p.item(fmt.Sprintf("%s %s: %s", c.Operation, orNone(c.Version), strings.TrimPrefix(c.Kind, "call.")), beneath...)
	}
}

func (r Report) drawFindings(p page) {
	p.heading(2, "What was found")
	if len(r.Findings) == 0 {
		p.paragraph("No result that is kept as an artifact makes a statement.")
	}
	last := ""
	for i, f := range r.Findings {
		if f.Result != last {
			last = f.Result
			p.heading(3, r.nameOf(f.Result))
			if len(f.Labels) > 0 {
				p.paragraph(labelled("What follows", f.Labels))
			}
		}
		var beneath []string
		for _, place := range f.Places {
			text := cited(place)
			switch {
			case place.Missing:
				text += ", which is not there"
			case place.Quote != "":
				text += ": " + place.Quote
			}
			beneath = append(beneath, text)
		}
		if len(f.Places) == 0 {
			beneath = append(beneath, "It cites no line, frame or byte.")
		}
		p.item(fmt.Sprintf("F%d. %s", i+1, f.Text), append(beneath,
			fmt.Sprintf("said by %s, sha256 %s, at %s, of call %s, %s", f.Result, f.SHA256, f.At, orNone(f.Call), inLedger(f.Entry)))...)
	}
}

// nameOf is an artifact with its name.
func (r Report) nameOf(id string) string {
	i := slices.IndexFunc(r.Artifacts, func(a Artifact) bool { return a.ID == id })
	if i < 0 {
		return id
	}
	return r.Artifacts[i].Tool + ": " + r.Artifacts[i].Name + " (" + id + ")"
}

func placeOf(e timeline.Event) Place {
	return Place{Artifact: e.Artifact, Name: e.Name, SHA256: e.SHA256, Line: e.Line, Frame: e.Frame, Offset: e.Offset}
}

// cited is a place in words.
func cited(p Place) string {
	text := fmt.Sprintf("%s (%s, sha256 %s)", p.Name, p.Artifact, p.SHA256)
	if p.Line > 0 {
		text += fmt.Sprintf(" line %d", p.Line)
	}
	if p.Frame > 0 {
		text += fmt.Sprintf(" frame %d", p.Frame)
	}
	if p.Offset >= 0 {
		text += fmt.Sprintf(" byte %d", p.Offset)
	}
	return text
}

// words say which moment it is.
func (u Until) words() string {
	text := "up to "
	if len(u.Entries) == 0 {
		text = "before the first call"
	}
	for i, e := range u.Entries {
		if i > 0 {
			text += ", "
		}
		text += inLedger(e)
	}
	if u.Artifact != "" {
		text += ", and artifact " + u.Artifact
	}
	return text
}

func inLedger(e Entry) string {
	if e.Seq == 0 {
		return "with no entry in the ledger"
	}
	return fmt.Sprintf("ledger entry %d of chain %d, hash %s", e.Seq, e.Chain, e.Hash)
}

func labelled(what string, labels []string) string {
	text := what + " is labelled " + strings.Join(labels, ", ")
	if slices.Contains(labels, "untrusted") {
		text += ": some of it came from outside, and the host does not vouch for its words"
	}
	return text + "."
}

func clock(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.999999Z") }

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}
