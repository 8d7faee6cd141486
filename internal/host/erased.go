package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
)

// ErasedFile is a list, in the data directory, of whose data was erased: a database that was
// restored from a backup made before that has it again, and it is erased again.
const ErasedFile = "erased.jsonl"

// An erasedLine is one line of [ErasedFile].
type erasedLine struct {
	ID        string    `json:"id"`
	Tenant    string    `json:"tenant"`
	Principal string    `json:"principal"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`
}

// listErased adds an erasure to the list, unless it is there.
func (h *Host) listErased(row *erasureRow) error {
	if lines, err := h.erased(); err != nil || slices.ContainsFunc(lines, func(l erasedLine) bool { return l.ID == row.ID }) {
		return err
	}
	line, err := json.Marshal(erasedLine{row.ID, row.Tenant, row.Principal, row.By, row.AskedAt})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(h.parts.Home, ErasedFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// erased reads the list. A last line that a crash cut short is none.
func (h *Host) erased() (lines []erasedLine, err error) {
	text, err := os.ReadFile(filepath.Join(h.parts.Home, ErasedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		var line erasedLine
		if json.Unmarshal(scan.Bytes(), &line) == nil && line.ID != "" {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// reapply begins again the erasures that the list has and the database does not know: it was
// restored from a backup that was made before them.
func (h *Host) reapply(ctx context.Context) error {
	lines, err := h.erased()
	g := h.parts.Guard
	lines = slices.DeleteFunc(lines, func(l erasedLine) bool { return l.Tenant != g.Tenant })
	if err != nil || len(lines) == 0 {
		return err
	}
	known, err := g.Store.Erasures(ctx, g.Tenant, false)
	for _, l := range lines {
		if err != nil || slices.ContainsFunc(known, func(row erasureRow) bool { return row.ID == l.ID }) {
			continue
		}
		row := erasureRow{Tenant: l.Tenant, ID: l.ID, Principal: l.Principal, By: l.By, AskedAt: l.At}
		who := principal.Parse(l.Principal)
		if row.Peers, err = (Admin{kept: kept{g: g}}).peersOf(ctx, who); err == nil {
			err = g.Store.Write(ctx, func(tx Tx) error {
				_, err := g.openErasure(tx, principal.Parse(l.By), row)
				return err
			})
		}
	}
	return err
}
