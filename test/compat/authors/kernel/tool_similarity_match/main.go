package main

import (
	"bufio"
	"encoding/json"
	"os"
	"sort"
	"time"
)

type candidate struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

type payload struct {
	Query      string      `json:"query"`
	Candidates []candidate `json:"candidates"`
	Top        int         `json:"top"`
}

type match struct {
	ID     string   `json:"id"`
	Score  float64  `json:"score"`
	Shared []string `json:"shared"`
}

func run(raw json.RawMessage) map[string]any {
	start := time.Now()
	answer := func(result any, err any) map[string]any {
		return map[string]any{"result": result, "metrics": map[string]any{"latency_ms": time.Since(start).Milliseconds()}, "error": err}
	}
	var in struct {
		Payload payload `json:"payload"`
	}
	if err := json.Unmarshal(raw, &in); err != nil || in.Payload.Query == "" || in.Payload.Candidates == nil {
		return answer(nil, map[string]any{"code": "VALIDATION_ERROR", "message": "query and candidates are required"})
	}
	q, out := vectorize(in.Payload.Query), []match{}
	for _, c := range in.Payload.Candidates {
		s, shared := cosine(q, vectorize(c.Text))
		out = append(out, match{c.ID, s, shared})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Score > out[j].Score })
	if in.Payload.Top > 0 && len(out) > in.Payload.Top {
		out = out[:in.Payload.Top]
	}
	return answer(map[string]any{"matches": out}, nil)
}

func main() {
	dec := json.NewDecoder(bufio.NewReader(os.Stdin))
	enc := json.NewEncoder(os.Stdout)
	for {
		var m struct {
			Type      string          `json:"type"`
			Version   string          `json:"protocol_version"`
			RequestID string          `json:"request_id"`
			Input     json.RawMessage `json:"input"`
		}
		if dec.Decode(&m) != nil {
			return
		}
		if m.Type == "handshake" {
			enc.Encode(map[string]any{"type": "handshake", "manifest": map[string]any{"plugin_id": "Similarity.Match", "plugin_version": "1.0.0", "protocol_version": m.Version, "exposed_tools": []string{"Similarity.Match"}, "capabilities": []string{}}})
			continue
		}
		enc.Encode(map[string]any{"type": "response", "request_id": m.RequestID, "status": "ok", "output": run(m.Input)})
		return
	}
}
