package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	kbName            = "kb"
	kbWrite           = "kb_write"
	kbDocument        = "kb.ingest_document"
	kbEmail           = "kb.ingest_email"
	kbThread          = "kb.ingest_thread"
	kbText            = "kb.ingest_text"
	kbObject          = "kb.upsert_knowledge_object"
	kbDelete          = "kb.delete"
	kbSearchChunks    = "kb.search_chunks"
	kbSearchDocuments = "kb.search_documents"
	kbGetDocument     = "kb.get_document"
	kbFindChunks      = "kb.find_chunks"
	kbFindDocuments   = "kb.find_documents"
	kbFindDocument    = "kb.find_document"
	queryName         = "query"
	queryList         = "query.list"
	queryGet          = "query.get"
)

// A file is bytes in an argument, or the path of a file in the scratch directory.
type file struct {
	Bytes *string `json:"$bytes"`
	File  *string `json:"$file"`
}

// read returns the bytes.
func (f file) read(g *grant, method string) ([]byte, error) {
	if (f.Bytes == nil) == (f.File == nil) {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, `%s: file is {"$bytes": base64} or {"$file": a path in the scratch directory}`, method)
	}
	if f.Bytes != nil {
		data, err := base64.StdEncoding.Strict().DecodeString(*f.Bytes)
		if err != nil {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: file.$bytes: %w", method, err)
		}
		return data, nil
	}
	from, err := g.openScratch(*f.File)
	if err != nil {
		return nil, err
	}
	defer from.close()
	return io.ReadAll(io.LimitReader(from, extract.MaxFile+1)) // one more than is read, which is refused as too large
}

// kbAllowed returns the knowledge base that is meant, where the call may use it:
// a call that was given some uses no others.
func (g *grant) kbAllowed(method, id string) (string, error) {
	given := g.overlay().KB.IDs
	switch {
	case g.broker.Knowledge == nil:
		return "", nowhere(method)
	case id == "" && len(given) == 0:
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%s: kb_id is missing", method)
	case id == "":
		return given[0], nil
	case len(given) > 0 && !slices.Contains(given, id):
		return "", plugin.Errorf(plugin.CodeServiceDenied, "%s: the call was given the knowledge bases %q and may not use %.80q", method, given, id)
	}
	return id, nil
}

// kbsAllowed returns those that may be searched.
func (g *grant) kbsAllowed(ctx context.Context, method string, ids []string) ([]string, error) {
	if len(ids) == 0 {
		if ids = g.overlay().KB.IDs; len(ids) > 0 || g.broker.Knowledge == nil {
			return ids, nil
		}
		return g.broker.Knowledge.IDs(ctx, g.call.Tenant)
	}
	for _, id := range ids {
		if _, err := g.kbAllowed(method, id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// What all ingest methods have in common.
type ingestArgs struct {
	KB         string  `json:"kb_id"`
	SourceURL  string  `json:"source_url"`
	Attributes members `json:"attributes"`
}

// ingests is the task of putting a source into a knowledge base. What takes long
// is done before the transaction begins.
func (g *grant) ingests(method string, in ingestArgs, source func() (kb.Source, error)) (task, error) {
	base, err := g.kbAllowed(method, in.KB)
	if err != nil {
		return task{}, err
	}
	mode, err := extract.ParseMode(g.overlay().OCR.Mode)
	if err != nil {
		return task{}, err
	}
	var prepared *kb.Prepared
	prepare := func(ctx context.Context) error {
		s, err := source()
		if err != nil {
			return err
		}
		if s.URL = in.SourceURL; s.URL == "" {
			s.URL, _ = in.Attributes["source_url"].(string)
		}
		s.KB, s.OCR, s.Attributes = base, mode, in.Attributes
		if more, ok := in.Attributes["extraction_metadata"].(map[string]any); ok {
			if s.Details == nil {
				s.Details = map[string]any{}
			}
			maps.Copy(s.Details, more)
		}
		s.Labels = plugin.Labels(g.call.Labels, g.Labels())
		s.ByHash = g.target.Manifest.Contract.DocumentsByHash
		s.By = kb.By{Plugin: g.target.Manifest.Name, Principal: g.call.Principal.Member(), Call: g.call.ID, Operation: g.target.Name(), Session: g.call.Session}
		if prepared, err = g.knowledge().Prepare(ctx, g.call.Tenant, s); err == nil {
			g.heard(prepared.Heard())
		}
		return err
	}
	return task{class: Local, effect: kbWrite, before: prepare,
		dry: func(ctx context.Context) (any, *plugin.Change, error) {
			if err := prepare(ctx); err != nil {
				return nil, nil, err
			}
			return g.ingestDry(ctx, method, base, prepared)
		},
		commit: func(_ context.Context, tx ledger.Tx) (any, error) { return prepared.Result(), prepared.Put(tx) },
	}, nil
}

func kbDocumentTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		ingestArgs
		File     file   `json:"file"`
		Filename string `json:"filename"`
		MIME     string `json:"mime_type"`
		SourceID string `json:"source_id"`
	}
	if err := decode(kbDocument, args, &in); err != nil {
		return task{}, err
	}
	return g.ingests(kbDocument, in.ingestArgs, func() (kb.Source, error) {
		data, err := in.File.read(g, kbDocument)
		return kb.Source{ID: in.SourceID, Title: in.Filename, File: &extract.File{Data: data, MIME: in.MIME, Name: in.Filename}}, err
	})
}

func kbTextTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		ingestArgs
		Title    string `json:"title"`
		Content  string `json:"content"`
		SourceID string `json:"source_id"`
	}
	if err := decode(kbText, args, &in); err != nil {
		return task{}, err
	}
	return g.ingests(kbText, in.ingestArgs, func() (kb.Source, error) {
		return kb.Source{ID: in.SourceID, Title: in.Title, Text: in.Content}, nil
	})
}

func kbThreadTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		ingestArgs
		Title    string `json:"title"`
		Content  string `json:"content"`
		ThreadID string `json:"thread_id"`
	}
	if err := decode(kbThread, args, &in); err != nil {
		return task{}, err
	}
	return g.ingests(kbThread, in.ingestArgs, func() (kb.Source, error) {
		return kb.Source{ID: in.ThreadID, Title: in.Title, Text: in.Content, Details: map[string]any{"thread_id": in.ThreadID}}, nil
	})
}

func kbEmailTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		ingestArgs
		kb.Email
	}
	if err := decode(kbEmail, args, &in); err != nil {
		return task{}, err
	}
	return g.ingests(kbEmail, in.ingestArgs, func() (kb.Source, error) {
		id, _ := in.Attributes["external_id"].(string)
		return in.Email.Source(id), nil
	})
}

func kbObjectTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		KB string  `json:"kb_id"`
		KO members `json:"ko"`
	}
	if err := decode(kbObject, args, &in); err != nil {
		return task{}, err
	}
	s, err := kb.Object(in.KO)
	if err != nil {
		return task{}, err
	}
	attributes, _ := in.KO["attributes"].(map[string]any)
	return g.ingests(kbObject, ingestArgs{KB: in.KB, SourceURL: s.URL, Attributes: attributes}, func() (kb.Source, error) { return s, nil })
}

// kbDeleteTask deletes what the plugin put there for the same user. Only a feed
// may: it is what follows a source that has deleted something.
func kbDeleteTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		KB       string `json:"kb_id"`
		External string `json:"external_id"`
	}
	if err := decode(kbDelete, args, &in); err != nil {
		return task{}, err
	}
	if in.External == "" {
		return task{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: external_id is missing", kbDelete)
	}
	if g.overlay().Exec.Schedule == "" {
		refusal := plugin.Errorf(plugin.CodeServiceDenied, "%s: only a feed deletes; a person does with 'mortise kb delete %s DOCUMENT'", kbDelete, cmp.Or(in.KB, "KB"))
		refusal.Details = json.RawMessage(`{"reason":"kb_delete_not_allowed_outside_feed"}`)
		return task{}, refusal
	}
	base, err := g.kbAllowed(kbDelete, in.KB)
	if err != nil {
		return task{}, err
	}
	object := kb.ObjectID(g.target.Manifest.Name, g.call.Principal.Member(), in.External)
	var removal *kb.Removal
	find := func(ctx context.Context) (err error) {
		if removal, err = g.broker.Knowledge.Object(ctx, g.call.Tenant, base, object); err == nil {
			g.hearAll(removal.Documents())
		}
		return err
	}
	return task{class: Local, effect: kbWrite, before: find,
		dry: func(ctx context.Context) (any, *plugin.Change, error) {
			if err := find(ctx); err != nil {
				return nil, nil, err
			}
			return g.deleteDry(base, object, in.External, removal)
		},
		commit: func(_ context.Context, tx ledger.Tx) (any, error) {
			return deletionOf(removal.Documents()), removal.Delete(tx)
		},
	}, nil
}

// hearAll has the caller's answer inherit the labels of documents.
func (g *grant) hearAll(documents []kb.Document) {
	for i := range documents {
		g.heard(documents[i].Labels)
	}
}

// deletionOf tells which document is gone, as Shu's delete_ko does.
func deletionOf(gone []kb.Document) deletion {
	if len(gone) == 0 {
		return deletion{}
	}
	return deletion{true, gone[0].ID, &gone[0].Chunks}
}

type searchArgs struct {
	KBs   []string `json:"kb_ids"`
	Query string   `json:"query"`
	Limit int      `json:"limit"`
}

func (g *grant) search(ctx context.Context, method string, args json.RawMessage, limit func(int) int) (hits []kb.Hit, most int, err error) {
	var in searchArgs
	if err := decode(method, args, &in); err != nil {
		return nil, 0, err
	}
	if g.broker.Knowledge == nil {
		return nil, 0, nowhere(method)
	}
	ids, err := g.kbsAllowed(ctx, method, in.KBs)
	if err != nil || len(ids) == 0 {
		return nil, 0, err
	}
	if in.Limit == 0 {
		in.Limit = 10
	}
	hits, err = g.knowledge().Search(ctx, g.call.Tenant, kb.Query{KBs: ids, Text: in.Query, Limit: limit(in.Limit), By: kb.By{
		Plugin: g.target.Manifest.Name, Principal: g.call.Principal.Member(), Call: g.call.ID, Operation: g.target.Name(), Session: g.call.Session,
	}})
	for _, h := range hits {
		g.heard(h.Labels)
	}
	return hits, in.Limit, err
}

type hitsFound struct {
	Results []kb.Hit `json:"results"`
}

// kbChunksFound answers kb.search_chunks.
func kbChunksFound(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	hits, _, err := g.search(ctx, kbSearchChunks, args, func(n int) int { return n })
	return hitsFound{append([]kb.Hit{}, hits...)}, err
}

// kbDocumentsFound answers kb.search_documents: of each document its best
// passage.
func kbDocumentsFound(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	hits, most, err := g.search(ctx, kbSearchDocuments, args, func(n int) int {
		if n < 1 {
			return n // which is refused
		}
		return min(5*n, max(n, 100))
	})
	return hitsFound{kb.BestOfEach(hits, most)}, err
}

// kbDocumentRead answers kb.get_document and query.get.
func kbDocumentRead(method string) func(*grant, context.Context, json.RawMessage) (any, error) {
	return func(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
		var in struct {
			KB string `json:"kb_id"`
			ID string `json:"document_id"`
		}
		if err := decode(method, args, &in); err != nil {
			return nil, err
		}
		if g.broker.Knowledge == nil {
			return nil, nowhere(method)
		}
		ids := []string{in.KB}
		if in.KB == "" {
			ids = nil
		}
		ids, err := g.kbsAllowed(ctx, method, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			d, err := g.document(ctx, id, in.ID)
			if plugin.CodeOf(err) == plugin.CodeNotFound {
				continue
			}
			g.heard(d.Labels)
			return d, err
		}
		return nil, plugin.Errorf(plugin.CodeNotFound, "%s: there is no document %.200q in the knowledge bases that the call may read", method, in.ID)
	}
}

type documentsListed struct {
	Documents []kb.Document `json:"documents"`
}

// queryListed answers query.list.
func queryListed(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		KB         string `json:"kb_id"`
		SourceType string `json:"source_type"`
		After      string `json:"after"`
		Limit      int    `json:"limit"`
	}
	if err := decode(queryList, args, &in); err != nil {
		return nil, err
	}
	base, err := g.kbAllowed(queryList, in.KB)
	if err != nil {
		return nil, err
	}
	documents, err := g.broker.Knowledge.Documents(ctx, g.call.Tenant, kb.Listing{KB: base, SourceType: in.SourceType, After: in.After, Limit: in.Limit, Room: func(bytes int) error {
		if most := g.broker.maxAnswer(); bytes > 2*most+8<<20 { // more than could be answered, whatever comes yet
			return plugin.Errorf(plugin.CodeLimitExceeded, "%s: the answer has more than the %d bytes that fit into one line of the protocol; ask for fewer documents at a time, with limit and after", queryList, most)
		}
		return take(ctx, queryList, 2*bytes)
	}})
	g.hearAll(documents)
	return documentsListed{documents}, err
}
