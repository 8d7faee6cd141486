// Package exchange reads the requests and answers that a page of the documentation shows, so
// that tests hold those of a host against them.
//
// A request begins with "> METHOD /path". Its headers follow, an empty line and its body. An
// answer begins with "< STATUS", and has headers and its body too:
//
//	On the socket:
//	> POST /api/v1/tokens
//	>
//	> {"name": "ci"}
//	< 200
//	< {"id": "...", "token": "$TOKEN"}
//
// A line before it that is neither is its note. What "..." stands for is not compared, and a
// member of that name stands for members that are not shown. What $NAME stands for is kept
// where it is seen first, and compared where it is seen again.
package exchange

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// An Exchange is a request that a page shows, with its answer.
type Exchange struct {
	Line    int    // of the page, where it begins
	Section string // the heading above it
	Note    string // the line before it in its block, "" for none

	Method, Path string
	Headers      []string // of the request, names and values in turn
	Body         string

	Status   int
	Answered []string // the headers of the answer that are shown, names and values in turn
	Answer   string   // its body, "" where none is shown
}

// asks is how a request begins.
var asks = pattern.New(`^(GET|POST|PUT|PATCH|DELETE) /`)

// Read returns the exchanges of a page in their order.
func Read(path string) (all []*Exchange, err error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var e *Exchange
	section, note, inBody, text := "", "", false, false // text: the answer has a body of lines
	for n, line := range strings.Split(string(page), "\n") {
		sent, request := strings.CutPrefix(line, ">")
		came, response := strings.CutPrefix(line, "<")
		sent, came = strings.TrimSpace(sent), strings.TrimPrefix(came, " ")
		whole := came
		if request {
			whole = sent
		}
		name, value, header := strings.Cut(whole, ": ")
		header = header && !strings.ContainsAny(name, "{\"< ")
		switch {
		case strings.HasPrefix(line, "## "):
			section = strings.TrimPrefix(line, "## ")
		case !request && !response:
			note = line
		case request && asks.MatchString(sent):
			e, inBody, text = &Exchange{Line: n + 1, Section: section}, false, false
			if !strings.HasPrefix(note, "```") {
				e.Note = note
			}
			e.Method, e.Path, _ = strings.Cut(sent, " ")
			all = append(all, e)
		case e == nil:
			return nil, fmt.Errorf("%s:%d: this belongs to no request", path, n+1)
		case request && sent == "":
			inBody = true
		case request && !inBody:
			e.Headers = append(e.Headers, name, value)
		case request:
			e.Body += sent
		case e.Status == 0:
			if _, err := fmt.Sscan(came, &e.Status); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
			}
		case came == "" && !text:
			text = true
		case text:
			e.Answer += came + "\n"
		case strings.HasPrefix(came, " ") && e.Answer == "" && len(e.Answered) > 0:
			e.Answered[len(e.Answered)-1] += strings.TrimSpace(came)
		case header && e.Answer == "":
			e.Answered = append(e.Answered, name, value)
		default:
			e.Answer += came
		}
	}
	return all, nil
}

// Values are what the names of a page stand for.
type Values map[string]string

// variable is what a page writes for what differs each time.
var variable = pattern.New(`\.\.\.|\$[A-Z]+`)

// Fill returns a text of the page with the values of its names.
func (v Values) Fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if value, known := v[strings.TrimPrefix(name, "$")]; known {
			return value
		}
		return name
	})
}

// Fits reports whether a text is as the page has it, and keeps what its new names stand for.
func (v Values) Fits(want, got string) bool {
	form, names := "", []string{}
	for rest := want; ; {
		at := variable.FindStringIndex(rest)
		if at == nil {
			form += regexp.QuoteMeta(rest)
			break
		}
		form += regexp.QuoteMeta(rest[:at[0]])
		name, is := strings.CutPrefix(rest[at[0]:at[1]], "$")
		value, known := v[name]
		switch {
		case !is:
			form += `.*?`
		case known:
			form += regexp.QuoteMeta(value)
		default:
			form += `([^\s;&"]+)`
			names = append(names, name)
		}
		rest = rest[at[1]:]
	}
	found := regexp.MustCompile(`(?s)^` + form + `$`).FindStringSubmatch(got)
	if found == nil {
		return false
	}
	for i, name := range names {
		v[name] = found[i+1]
	}
	return true
}

// Differs says where an answer is not as the page shows it, "" where it is. header returns
// the values of a header, and body is what came.
func (v Values) Differs(e *Exchange, status int, header func(name string) []string, body string) string {
	if status != e.Status {
		return fmt.Sprintf("the status is %d", status)
	}
	for i := 0; i < len(e.Answered); i += 2 {
		name, fits := e.Answered[i], false
		for _, got := range header(name) {
			fits = fits || v.Fits(e.Answered[i+1], got)
		}
		if !fits {
			return fmt.Sprintf("%s is %q", name, header(name))
		}
	}
	if !strings.HasPrefix(e.Answer, "{") {
		if e.Answer == "" && !strings.HasPrefix(body, "{") { // a text for who follows no redirect
			return ""
		}
		if !v.Fits(e.Answer, body) {
			return "the body is another"
		}
		return ""
	}
	want, err := decode(e.Answer)
	if err != nil {
		return "the page has no JSON: " + err.Error()
	}
	got, err := decode(body)
	if err != nil {
		return "it is no JSON: " + err.Error()
	}
	if at := v.differs(want, got, ""); at != "" {
		return "it differs at " + at
	}
	return ""
}

func decode(text string) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// differs returns where two values differ. A text "..." is any value but null.
func (v Values) differs(want, got any, at string) string {
	switch want := want.(type) {
	case string:
		if text, is := got.(string); want == "..." && got != nil || is && v.Fits(want, text) {
			return ""
		}
		return at + "/"
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return at + "/"
		}
		for i := range want {
			if where := v.differs(want[i], list[i], fmt.Sprint(at, "/", i)); where != "" {
				return where
			}
		}
		return ""
	case map[string]any:
		object, _ := got.(map[string]any)
		_, more := want["..."]
		for name := range object {
			if _, there := want[name]; !there && !more {
				return at + "/" + name
			}
		}
		for name, value := range want {
			if name == "..." {
				continue
			}
			if where := v.differs(value, object[name], at+"/"+name); where != "" {
				return where
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return at + "/"
	}
	return ""
}
