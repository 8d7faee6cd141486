package service

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

const (
	cursorName   = "cursor"
	cursorGet    = "cursor.get"
	cursorSet    = "cursor.set"
	cursorDelete = "cursor.delete"
	cursorWrite  = "cursor_write"

	cursorNamespace = "cursor"
	cursorIDBytes   = 200
)

// An overlay is what of a call's overlay services go by.
type overlay struct {
	Exec struct {
		Schedule string `json:"schedule_id"`
	} `json:"exec"`
	OCR struct {
		Mode string `json:"mode"`
	} `json:"ocr"`
	KB struct {
		IDs []string `json:"knowledge_base_ids"`
	} `json:"kb"`
}

func (g *grant) overlay() (o overlay) {
	if json.Unmarshal(g.call.Overlay, &o) != nil {
		return overlay{}
	}
	return o
}

// CursorKey says under which key the cursor of a knowledge base is: for a feed
// its own, and one for all calls beside.
func CursorKey(schedule, kb string) string {
	if schedule == "" {
		return "adhoc:kb:" + kb
	}
	return "feed:" + schedule + ":kb:" + kb
}

// CursorPlace says where a plugin's cursor of a knowledge base is kept.
func CursorPlace(tenant, plugin, subject, schedule, kb string) kvKey {
	return kvKey{Tenant: tenant, Owner: plugin, Scope: subject, Namespace: cursorNamespace, Key: CursorKey(schedule, kb)}
}

func cursorRead(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	key, _, err := g.cursorPlace(cursorGet, args)
	if err != nil {
		return nil, err
	}
	return g.read(ctx, cursorGet, key)
}

func cursorSetTask(g *grant, args json.RawMessage) (task, error) {
	key, value, err := g.cursorPlace(cursorSet, args)
	if err != nil {
		return task{}, err
	}
	if err := checkValue(cursorSet, value); err != nil {
		return task{}, err
	}
	return g.keeps(cursorWrite, cursorSet, key, value)
}

func cursorDeleteTask(g *grant, args json.RawMessage) (task, error) {
	key, _, err := g.cursorPlace(cursorDelete, args)
	if err != nil {
		return task{}, err
	}
	return g.drops(cursorWrite, cursorDelete, key)
}

// cursorPlace reads the arguments of a cursor method.
func (g *grant) cursorPlace(method string, args json.RawMessage) (kvKey, json.RawMessage, error) {
	var in struct {
		KB    string          `json:"kb_id"`
		Value json.RawMessage `json:"value"`
	}
	if err := decode(method, args, &in); err != nil {
		return kvKey{}, nil, err
	}
	if in.KB == "" || len(in.KB) > cursorIDBytes || strings.ContainsRune(in.KB, 0) {
		return kvKey{}, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: kb_id has 1 to %d bytes and none that is NUL", method, cursorIDBytes)
	}
	schedule := g.overlay().Exec.Schedule
	if len(schedule) > cursorIDBytes || strings.ContainsRune(schedule, 0) {
		return kvKey{}, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: the schedule's id has more than %d bytes", method, cursorIDBytes)
	}
	return CursorPlace(g.call.Tenant, g.target.Manifest.Name, g.subject(), schedule, in.KB), in.Value, nil
}
