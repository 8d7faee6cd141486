// cron.next: next run times of a five-field cron expression (UTC).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

type set [60]bool

type spec struct{ min, hour, dom, mon, dow set }

func field(text string, lo, hi int) (set, error) {
	var s set
	for _, part := range strings.Split(text, ",") {
		step := 1
		if i := strings.IndexByte(part, '/'); i >= 0 {
			n, err := strconv.Atoi(part[i+1:])
			if err != nil || n < 1 {
				return s, fmt.Errorf("bad step in %q", text)
			}
			step, part = n, part[:i]
		}
		a, b := lo, hi
		if part != "*" {
			ends := strings.SplitN(part, "-", 2)
			var err error
			if a, err = strconv.Atoi(ends[0]); err != nil {
				return s, fmt.Errorf("bad value %q", part)
			}
			b = a
			if len(ends) == 2 {
				if b, err = strconv.Atoi(ends[1]); err != nil {
					return s, fmt.Errorf("bad value %q", part)
				}
			}
		}
		if a < lo || b > hi || a > b {
			return s, fmt.Errorf("%q is not within %d-%d", part, lo, hi)
		}
		for v := a; v <= b; v += step {
			s[v] = true
		}
	}
	return s, nil
}

func parse(expr string) (sp spec, err error) {
	f := strings.Fields(expr)
	if len(f) != 5 {
		return sp, errors.New("five fields are needed")
	}
	for i, t := range []struct {
		dst    *set
		lo, hi int
	}{{&sp.min, 0, 59}, {&sp.hour, 0, 23}, {&sp.dom, 1, 31}, {&sp.mon, 1, 12}, {&sp.dow, 0, 6}} {
		if *t.dst, err = field(f[i], t.lo, t.hi); err != nil {
			return sp, err
		}
	}
	return sp, nil
}

func next(sp spec, from time.Time, n int) []string {
	out := []string{}
	t := from.Truncate(time.Minute).Add(time.Minute)
	for end := from.AddDate(5, 0, 0); len(out) < n && t.Before(end); {
		switch {
		case !sp.mon[int(t.Month())] || !sp.dom[t.Day()] || !sp.dow[int(t.Weekday())]:
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		case !sp.hour[t.Hour()]:
			t = t.Truncate(time.Hour).Add(time.Hour)
		case !sp.min[t.Minute()]:
			t = t.Add(time.Minute)
		default:
			out = append(out, t.Format(time.RFC3339))
			t = t.Add(time.Minute)
		}
	}
	return out
}

type msg struct {
	Type     string `json:"type"`
	Protocol string `json:"protocol_version"`
	ID       string `json:"request_id"`
	Tool     string `json:"tool_name"`
	Input    struct {
		Expr  string `json:"expression"`
		From  string `json:"from"`
		Count int    `json:"count"`
	} `json:"input"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	sc := bufio.NewScanner(os.Stdin)
	for sc.Scan() {
		var m msg
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			fmt.Fprintln(os.Stderr, "fatal:", err)
			os.Exit(3) // no answer on purpose: the core reports it
		}
		if m.Type == "handshake" {
			out.Encode(map[string]any{"type": "handshake", "manifest": map[string]any{"plugin_id": "time.cron", "plugin_version": "1.0.0", "protocol_version": m.Protocol, "exposed_tools": []string{"cron.next", "cron.check"}, "capabilities": []string{}}})
			continue
		}
		fail := func(e string) {
			out.Encode(map[string]any{"type": "response", "request_id": m.ID, "status": "error", "error": map[string]string{"code": "invalid_input", "message": e}})
		}
		sp, err := parse(m.Input.Expr)
		if m.Tool == "cron.check" {
			text := ""
			if err != nil {
				text = err.Error()
			}
			out.Encode(map[string]any{"type": "response", "request_id": m.ID, "status": "ok", "output": map[string]any{"valid": err == nil, "problem": text}})
			return
		}
		if err != nil {
			fail(err.Error())
			return
		}
		from, err := time.Parse(time.RFC3339, m.Input.From)
		if err != nil {
			fail("from must be RFC 3339")
			return
		}
		if m.Input.Count == 0 {
			m.Input.Count = 1
		}
		out.Encode(map[string]any{"type": "response", "request_id": m.ID, "status": "ok", "output": map[string]any{"runs": next(sp, from.UTC(), m.Input.Count)}})
		return
	}
}
