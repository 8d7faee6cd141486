// Export.Ledger renders entries as CSV, writes it once as the final object and answers its hash.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const name, version, scope = "Export.Ledger", "1.0.0", "ledger:export"

type request struct {
	Type      string `json:"type"`
	Version   string `json:"protocol_version"`
	RequestID string `json:"request_id"`
	Context   struct {
		RepoRoot string `json:"repo_root"`
	} `json:"context"`
	Input struct {
		Payload *struct {
			LedgerID string `json:"ledger_id"`
			Entries  []struct {
				Date   string  `json:"date"`
				Text   string  `json:"text"`
				Amount float64 `json:"amount"`
			} `json:"entries"`
		} `json:"payload"`
		Key  string `json:"idempotency_key"`
		Auth struct {
			Tenant any      `json:"tenant_id"`
			Scopes []string `json:"scopes"`
		} `json:"auth_context"`
	} `json:"input"`
}

type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type artifact struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Hash string `json:"hash"`
}

type answer struct {
	Status    string         `json:"status"`
	Result    map[string]any `json:"result"`
	Artifacts []artifact     `json:"artifacts"`
	Metrics   map[string]any `json:"metrics"`
	Error     *fault         `json:"error"`
	Nondet    map[string]any `json:"nondeterminism"`
}

func fail(code, format string, args ...any) answer {
	return answer{Status: "failed", Artifacts: []artifact{}, Metrics: map[string]any{}, Error: &fault{code, fmt.Sprintf(format, args...)}, Nondet: map[string]any{"is_nondeterministic": false, "reasons": []string{}, "stability": "high"}}
}

func run(r request) answer {
	start := time.Now()
	p := r.Input.Payload
	if p == nil || p.LedgerID == "" || len(p.Entries) == 0 || r.Input.Key == "" {
		return fail("VALIDATION_ERROR", "ledger_id, entries and idempotency_key are required")
	}
	allowed := false
	for _, s := range r.Input.Auth.Scopes {
		allowed = allowed || s == scope
	}
	if !allowed {
		return fail("POLICY_DENIED", "scope %s is missing", scope)
	}
	root := r.Context.RepoRoot
	if root == "" {
		root = os.TempDir()
	}
	dir := filepath.Join(root, "ledger-exports", fmt.Sprint(r.Input.Auth.Tenant))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail("STORAGE_ERROR", "%v", err)
	}
	sum := sha256.Sum256([]byte(name + "|" + r.Input.Key))
	record := filepath.Join(dir, "."+hex.EncodeToString(sum[:8])+".json")
	if old, err := os.ReadFile(record); err == nil {
		var a answer
		if json.Unmarshal(old, &a) == nil {
			return a
		}
	}
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	_ = w.Write([]string{"date", "text", "amount"})
	total := 0.0
	for i, e := range p.Entries {
		if _, err := time.Parse("2006-01-02", e.Date); err != nil {
			return fail("VALIDATION_ERROR", "entries[%d].date: %s", i, e.Date)
		}
		total += e.Amount
		_ = w.Write([]string{e.Date, e.Text, strconv.FormatFloat(e.Amount, 'f', 2, 64)})
	}
	w.Flush()
	h := sha256.Sum256(buf.Bytes())
	path := filepath.Join(dir, filepath.Base(p.LedgerID)+".csv")
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		return fail("STORAGE_ERROR", "%v", err)
	}
	a := answer{Status: "succeeded", Result: map[string]any{"schema_version": "1.0", "ledger_id": p.LedgerID, "rows": len(p.Entries), "total": total},
		Artifacts: []artifact{{"file", path, "sha256:" + hex.EncodeToString(h[:])}}, Metrics: map[string]any{"latency_ms": time.Since(start).Milliseconds(), "bytes": buf.Len()},
		Nondet: map[string]any{"is_nondeterministic": false, "reasons": []string{}, "stability": "high"}}
	if b, err := json.Marshal(a); err == nil {
		_ = os.WriteFile(record, b, 0o644)
	}
	return a
}

func main() {
	sc := bufio.NewScanner(os.Stdin)
	sc.Buffer(make([]byte, 64*1024), 2<<20)
	out := bufio.NewWriter(os.Stdout)
	for sc.Scan() {
		var r request
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			// a payload of the wrong types is the caller's mistake
			var id struct {
				RequestID string `json:"request_id"`
			}
			_ = json.Unmarshal(sc.Bytes(), &id)
			r.Type, r.RequestID, r.Input.Payload = "request", id.RequestID, nil
		}
		var reply any
		if r.Type == "handshake" {
			reply = map[string]any{"type": "handshake", "manifest": map[string]any{"plugin_id": name, "plugin_version": version, "protocol_version": r.Version, "exposed_tools": []string{name}, "capabilities": []string{}}}
		} else {
			reply = map[string]any{"type": "response", "request_id": r.RequestID, "status": "ok", "output": run(r)}
		}
		b, _ := json.Marshal(reply)
		_, _ = out.Write(append(b, '\n'))
		_ = out.Flush()
		if r.Type != "handshake" {
			return
		}
	}
}
