package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

type result struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size"`
	Error  string `json:"error,omitempty"`
}

func hash(root, name string) result {
	p := name
	if !filepath.IsAbs(p) {
		p = filepath.Join(root, p)
	}
	r := result{Path: filepath.Base(name)}
	f, err := os.Open(p)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			r.Error = "not found"
		} else {
			r.Error = "unreadable"
		}
		return r
	}
	defer f.Close()
	h := sha256.New()
	if r.Size, err = io.Copy(h, f); err != nil {
		r.Error = "unreadable"
		return r
	}
	r.SHA256 = hex.EncodeToString(h.Sum(nil))
	return r
}

func main() {
	in, w := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	put := func(v any) {
		b, _ := json.Marshal(v)
		w.Write(b)
		w.WriteByte('\n')
		w.Flush()
	}
	for {
		line, err := in.ReadString('\n')
		if strings.TrimSpace(line) == "" {
			if err != nil {
				return
			}
			continue
		}
		var m struct {
			Type      string `json:"type"`
			Version   string `json:"protocol_version"`
			RequestID string `json:"request_id"`
			Context   struct {
				RepoRoot string `json:"repo_root"`
			} `json:"context"`
			Input struct {
				Paths    []string          `json:"paths"`
				Expected map[string]string `json:"expected"`
			} `json:"input"`
		}
		if e := json.Unmarshal([]byte(line), &m); e != nil && m.RequestID == "" {
			os.Exit(1)
		} else if m.Type == "handshake" {
			put(map[string]any{"type": "handshake", "manifest": map[string]any{"plugin_id": "fs.hash", "plugin_version": "2.1.0", "protocol_version": m.Version, "exposed_tools": []string{"file.hash"}, "capabilities": []string{"fs.read"}}})
			continue
		} else if e != nil || len(m.Input.Paths) == 0 {
			put(map[string]any{"type": "response", "request_id": m.RequestID, "status": "error", "error": map[string]any{"code": "invalid_input", "message": "paths: non-empty list of texts"}})
			return
		}
		out := make([]result, len(m.Input.Paths))
		var wg sync.WaitGroup
		for i, p := range m.Input.Paths {
			wg.Add(1)
			go func(i int, p string) { defer wg.Done(); out[i] = hash(m.Context.RepoRoot, p) }(i, p)
		}
		wg.Wait()
		mismatch, missing := []string{}, 0
		for _, r := range out {
			if want, ok := m.Input.Expected[r.Path]; ok && want != r.SHA256 {
				mismatch = append(mismatch, r.Path)
			}
			if r.Error != "" {
				missing++
			}
		}
		put(map[string]any{"type": "response", "request_id": m.RequestID, "status": "ok", "output": map[string]any{"files": out, "failed": missing, "mismatch": mismatch}, "metadata": map[string]any{"workers": len(out)}})
		return
	}
}
