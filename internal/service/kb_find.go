package service

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// A searchFailure is how Shu's searches fail: by an answer, not by an error.
type searchFailure struct {
	Status string `json:"status"`
	Error  struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func searchFailed(code, format string, args ...any) *searchFailure {
	f := &searchFailure{Status: "error"}
	f.Error.Code, f.Error.Message = code, fmt.Sprintf(format, args...)
	return f
}

// bound returns the knowledge bases that the call is bound to, or why they cannot
// be searched. What a plugin names binds nothing.
func (g *grant) bound(ctx context.Context, method string) ([]kb.Base, *searchFailure, error) {
	if g.broker.Knowledge == nil {
		return nil, nil, nowhere(method)
	}
	ids := g.overlay().KB.IDs
	if len(ids) == 0 {
		return nil, searchFailed("no_knowledge_bases", "No knowledge bases are bound to this execution context."), nil
	}
	bases, err := g.broker.Knowledge.Named(ctx, g.call.Tenant, ids)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, searchFailed("access_denied", "a knowledge base that is bound to this execution context cannot be read"), nil
	}
	return bases, nil, err
}

// kbFound answers Shu's searches by field, operator and value.
func kbFound(method string, of kb.Fields) func(*grant, context.Context, json.RawMessage) (any, error) {
	return func(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
		var in struct {
			Field    string          `json:"field"`
			Operator string          `json:"operator"`
			Value    json.RawMessage `json:"value"`
			Page     int             `json:"page"`
			Order    string          `json:"sort_order"`
		}
		if err := decode(method, args, &in); err != nil {
			return nil, err
		}
		bases, failure, err := g.bound(ctx, method)
		if err != nil || failure != nil {
			return failure, err
		}
		condition, code, err := of.Condition(in.Field, in.Operator, in.Value)
		if err != nil {
			return searchFailed(code, "%s", err), nil
		}
		found, labels, err := g.broker.Knowledge.Find(ctx, g.call.Tenant, kb.Finding{Bases: bases, Condition: condition, Page: in.Page, Descending: in.Order == "desc"})
		g.heard(labels)
		return found, err
	}
}

// kbDocumentFound answers Shu's get_document.
func kbDocumentFound(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		ID string `json:"document_id"`
	}
	if err := decode(kbFindDocument, args, &in); err != nil {
		return nil, err
	}
	bases, failure, err := g.bound(ctx, kbFindDocument)
	if err != nil || failure != nil {
		return failure, err
	}
	for _, base := range bases {
		d, err := g.document(ctx, base.ID, in.ID)
		if plugin.CodeOf(err) == plugin.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		g.heard(d.Labels)
		return kb.DocumentRowOf(base.Name, &d, true), nil
	}
	return searchFailed("not_found", "there is no document %.200q in the knowledge bases that are bound to this execution context", in.ID), nil
}
