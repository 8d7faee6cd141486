// Support.Triage: routes a ticket by keywords and proposes one operator.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

const name, version = "Support.Triage", "0.2.0"

type message struct {
	Type            string `json:"type"`
	ProtocolVersion string `json:"protocol_version"`
	RequestID       string `json:"request_id"`
	Input           input  `json:"input"`
}

type input struct {
	Intent struct {
		Type    string         `json:"type"`
		Payload map[string]any `json:"payload"`
	} `json:"intent"`
	Context     map[string]any `json:"context"`
	Constraints map[string]any `json:"constraints"`
}

var queues = []struct {
	queue string
	words []string
}{
	{"security", []string{"phishing", "breach", "password"}},
	{"billing", []string{"invoice", "refund", "charge"}},
	{"technical", []string{"error", "crash", "timeout"}},
}

func text(m map[string]any, key string) string { s, _ := m[key].(string); return s }

func decide(in input) map[string]any {
	out := map[string]any{"agent_name": name, "agent_version": version, "kind": "plan_proposal"}
	ticket, ok := in.Context["ticket"].(map[string]any)
	if !ok || text(ticket, "body") == "" {
		out["confidence"] = 0.0
		out["rationale"] = map[string]any{"short": "no ticket", "signals": []string{}}
		out["error"] = map[string]any{"code": "NEEDS_CONTEXT", "message": "ticket.body is required"}
		return out
	}
	body := strings.ToLower(text(ticket, "subject") + " " + text(ticket, "body"))
	queue, signals, best := "general", []string{}, 0
	for _, q := range queues {
		n := 0
		for _, w := range q.words {
			if strings.Contains(body, w) {
				n++
				signals = append(signals, "ticket.body:"+w)
			}
		}
		if n > best {
			queue, best = q.queue, n
		}
	}
	operator := "Ticket.Route"
	if esc := text(in.Constraints, "escalation_operator"); esc != "" && queue == "security" {
		operator = esc // the Kernel decides whether that is allowed
	}
	out["confidence"] = 0.5 + 0.15*float64(best)
	out["rationale"] = map[string]any{"short": "queue " + queue, "signals": signals}
	out["required_actions"] = []any{map[string]any{"operator": operator, "payload": map[string]any{"queue": queue, "ticket_id": ticket["id"]}, "policy_tags": []string{"internal"}}}
	out["proposed_plan"] = map[string]any{"steps": []any{map[string]any{"step_id": "s1", "action": operator, "gate": "none"}}}
	return out
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	enc := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var m message
			if e := json.Unmarshal(line, &m); e != nil {
				fmt.Fprintln(os.Stderr, `{"level":"error","msg":"bad line"}`)
				os.Exit(1)
			}
			if m.Type == "handshake" {
				_ = enc.Encode(map[string]any{"type": "handshake", "manifest": map[string]any{"plugin_id": name, "plugin_version": version, "protocol_version": m.ProtocolVersion, "exposed_tools": []string{name}, "capabilities": []string{}}})
			} else {
				_ = enc.Encode(map[string]any{"type": "response", "request_id": m.RequestID, "status": "ok", "output": decide(m.Input), "metadata": map[string]any{"queues": len(queues)}})
				return
			}
		}
		if err != nil {
			return
		}
	}
}
