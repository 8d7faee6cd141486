package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	llmName       = "llm"
	llmText       = "llm.query_text"
	llmMultimodal = "llm.query_multimodal"
	llmDocument   = "llm.query_with_document"
	llmSupports   = "llm.supports_native_document"
)

// Bounds of one query.
const (
	llmPrompt    = 4 << 20  // bytes of prompt, system text and grounding together
	llmGrounding = 64       // pieces of grounding
	llmImage     = 16 << 20 // bytes of an image
	llmTokens    = 1 << 17  // of an answer
	llmQueries   = 1000     // of one call
)

// Documents is where the service finds what a plugin asks about.
type Documents interface {
	// Document returns an artifact of a session, by its id.
	Document(ctx context.Context, tenant, session, id string) (llm.Document, error)
}

// A queried is what became of a query (Event Mill, LLMResponse).
type queried struct {
	OK       bool        `json:"ok"`
	Text     *string     `json:"text"`
	Error    *string     `json:"error"`
	Usage    *tokenUsage `json:"token_usage"`
	Model    *string     `json:"model_used"`
	Path     *string     `json:"transport_path"`
	Fallback *string     `json:"fallback_reason"`
}

type tokenUsage struct {
	In    int `json:"input_tokens"`
	Out   int `json:"output_tokens"`
	Total int `json:"total_tokens"`
}

// A question is the arguments that all queries have.
type question struct {
	Prompt    string    `json:"prompt"`
	System    *string   `json:"system_context"`
	MaxTokens *int      `json:"max_tokens"`
	Grounding []string  `json:"grounding_data"`
	Hints     *hintsArg `json:"hints"`
}

type hintsArg struct {
	Tier       *string  `json:"tier"`
	Reasoning  *bool    `json:"needs_reasoning"`
	Structured *bool    `json:"needs_structured_output"`
	Native     *bool    `json:"prefers_native_file"`
	MaxCents   *float64 `json:"max_budget_cents"`
}

// query understands what all queries have in common.
func (in *question) query(name string, maxTokens int) (llm.Query, error) {
	refuse := func(format string, args ...any) (llm.Query, error) {
		return llm.Query{}, plugin.Errorf(plugin.CodeInvalidInput, name+": "+format, args...)
	}
	q := llm.Query{Prompt: in.Prompt, Grounding: in.Grounding, MaxTokens: maxTokens}
	if in.System != nil {
		q.System = *in.System
	}
	if in.MaxTokens != nil {
		q.MaxTokens = *in.MaxTokens
	}
	size := len(q.Prompt) + len(q.System)
	for _, item := range q.Grounding {
		size += len(item)
	}
	switch {
	case strings.TrimSpace(q.Prompt) == "":
		return refuse("the prompt is empty")
	case q.MaxTokens < 1 || q.MaxTokens > llmTokens:
		return refuse("max_tokens is %d; it is 1 to %d", q.MaxTokens, llmTokens)
	case len(q.Grounding) > llmGrounding:
		return refuse("grounding_data has %d pieces; at most %d are taken", len(q.Grounding), llmGrounding)
	case size > llmPrompt:
		return llm.Query{}, plugin.Errorf(plugin.CodeInputTooLarge, "%s: prompt, system_context and grounding_data have %d bytes; at most %d are sent", name, size, llmPrompt)
	}
	hints, err := in.Hints.hints()
	if err != nil {
		return refuse("%w", err)
	}
	q.Hints = hints
	return q, nil
}

// hints reads QueryHints. Members that are missing or null have the contract's
// defaults.
func (in *hintsArg) hints() (*llm.Hints, error) {
	if in == nil {
		return nil, nil
	}
	is := func(b *bool) bool { return b != nil && *b }
	h := &llm.Hints{Tier: llm.Light, NeedsReasoning: is(in.Reasoning), StructuredOutput: is(in.Structured), PrefersNative: is(in.Native)}
	if in.Tier != nil {
		h.Tier = llm.Tier(*in.Tier)
	}
	if h.Tier != llm.Light && h.Tier != llm.Heavy {
		return nil, errors.New("hints.tier is light or heavy")
	}
	if cents := in.MaxCents; cents != nil {
		if *cents < 0 || *cents > 1e9 {
			return nil, errors.New("hints.max_budget_cents is 0 to 1000000000")
		}
		budget := llm.MicroCents(math.Floor(*cents * 1e6))
		h.MaxBudget = &budget
	}
	return h, nil
}

// llmTextTask understands llm.query_text.
func llmTextTask(g *grant, args json.RawMessage) (task, error) {
	var in question
	if err := decode(llmText, args, &in); err != nil {
		return task{}, err
	}
	q, err := in.query(llmText, 4096)
	if err != nil {
		return task{}, err
	}
	return g.asking(llmText, func(context.Context) (llm.Query, error) { return q, nil })
}

// llmMultimodalTask understands llm.query_multimodal, which takes neither
// grounding nor hints.
func llmMultimodalTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		Prompt    string  `json:"prompt"`
		System    *string `json:"system_context"`
		MaxTokens *int    `json:"max_tokens"`
		Image     struct {
			Bytes *string `json:"$bytes"`
			File  *string `json:"$file"`
		} `json:"image"`
		Format string `json:"image_format"`
	}
	if err := decode(llmMultimodal, args, &in); err != nil {
		return task{}, err
	}
	common := question{Prompt: in.Prompt, System: in.System, MaxTokens: in.MaxTokens}
	q, err := common.query(llmMultimodal, 4096)
	if err != nil {
		return task{}, err
	}
	mime, known := imageFormats[strings.TrimPrefix(strings.ToLower(in.Format), "image/")]
	switch {
	case !known:
		return task{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: image_format is %.40q; it is png, jpeg, gif or webp", llmMultimodal, in.Format)
	case (in.Image.Bytes == nil) == (in.Image.File == nil):
		return task{}, plugin.Errorf(plugin.CodeInvalidInput, `%s: image is {"$bytes": base64} or {"$file": a path in the scratch directory}`, llmMultimodal)
	}
	return g.asking(llmMultimodal, func(context.Context) (llm.Query, error) {
		var data []byte
		var err error
		if in.Image.Bytes != nil {
			data, err = base64.StdEncoding.Strict().DecodeString(*in.Image.Bytes)
			if err != nil {
				err = plugin.Errorf(plugin.CodeInvalidInput, "%s: image.$bytes: %w", llmMultimodal, err)
			}
		} else {
			data, err = g.readScratch(*in.Image.File, llmImage)
		}
		switch {
		case err != nil:
			return q, err
		case len(data) == 0:
			return q, plugin.Errorf(plugin.CodeInvalidInput, "%s: the image is empty", llmMultimodal)
		case len(data) > llmImage:
			return q, tooLargeImage(int64(len(data)))
		}
		q.Image = &llm.Image{MIME: mime, Data: data}
		return q, nil
	})
}

var imageFormats = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}

func tooLargeImage(size int64) error {
	return plugin.Errorf(plugin.CodeInputTooLarge, "%s: the image has %d bytes; at most %d are sent", llmMultimodal, size, llmImage)
}

// readScratch returns the content of a file in the scratch directory.
func (g *grant) readScratch(named string, most int64) ([]byte, error) {
	file, err := g.openScratch(named)
	if err != nil {
		return nil, err
	}
	defer file.close()
	if size := file.was.Size(); size > most {
		return nil, tooLargeImage(size)
	}
	return io.ReadAll(io.LimitReader(file, most+1))
}

// llmDocumentTask understands llm.query_with_document: about an artifact of the
// session, or about a file that the plugin has in its scratch directory.
func llmDocumentTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		question
		Artifact string `json:"artifact_id"`
		File     *struct {
			Name string `json:"$file"`
		} `json:"document"`
		MIME string `json:"mime_type"`
	}
	if err := decode(llmDocument, args, &in); err != nil {
		return task{}, err
	}
	q, err := in.query(llmDocument, 8192)
	if err != nil {
		return task{}, err
	}
	switch {
	case in.File == nil && (in.Artifact == "" || len(in.Artifact) > maxWord):
		return task{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: artifact_id is 1 to %d bytes", llmDocument, maxWord)
	case in.File != nil && (in.Artifact != "" || in.File.Name == ""):
		return task{}, plugin.Errorf(plugin.CodeInvalidInput, `%s: it is artifact_id, or document: {"$file": a path in the scratch directory}`, llmDocument)
	case len(in.MIME) > maxWord:
		return task{}, plugin.Errorf(plugin.CodeInvalidInput, "%s: mime_type has at most %d bytes", llmDocument, maxWord)
	}
	if q.Hints == nil { // documents are the heavy tier's, and read as they are
		q.Hints = &llm.Hints{Tier: llm.Heavy, PrefersNative: true}
	}
	if in.File != nil {
		return g.asking(llmDocument, func(context.Context) (llm.Query, error) {
			var err error
			q.Document, err = g.documentOf(in.File.Name, in.MIME)
			return q, err
		})
	}
	return g.asking(llmDocument, func(ctx context.Context) (llm.Query, error) {
		if g.broker.Documents == nil || g.call.Session == "" {
			return q, &llm.Error{Kind: llm.Gap, Message: "the call belongs to no session from which a document could be sent; extract the text and ask about that"}
		}
		if _, err := g.artifacts(ctx); err != nil { // the answer is tainted with what the session is
			return q, err
		}
		doc, err := g.broker.Documents.Document(ctx, g.call.Tenant, g.call.Session, in.Artifact)
		if in.MIME != "" {
			doc.MIME = in.MIME
		}
		q.Document = &doc
		return q, err
	})
}

// llmSupported answers llm.supports_native_document.
func llmSupported(g *grant, _ context.Context, args json.RawMessage) (any, error) {
	var in struct {
		MIME string `json:"mime_type"`
	}
	if err := decode(llmSupports, args, &in); err != nil {
		return nil, err
	}
	return struct {
		Supported bool `json:"supported"`
	}{g.broker.Models.Enabled(g.target.Manifest.Name) && g.broker.Models.Reads(in.MIME)}, nil
}

// asking is the task of putting a query to a model.
func (g *grant) asking(name string, query func(context.Context) (llm.Query, error)) (task, error) {
	if m := g.broker.Models; m != nil && !m.Allowed(g.target.Manifest.Name) {
		return task{}, plugin.Errorf(plugin.CodeServiceDenied, "%s: %s may not ask models; an administrator lists who may under models.allow", name, g.target.Manifest.Name)
	}
	// put understands the query; gap is the answer where no model could have one.
	put := func(ctx context.Context) (q llm.Query, gap *queried, err error) {
		if n := g.queries.Add(1); n > llmQueries {
			return q, nil, plugin.Errorf(plugin.CodeLimitExceeded, "%s: one call asks models at most %d times", name, llmQueries)
		}
		q, err = query(ctx)
		var none *llm.Error
		if errors.As(err, &none) {
			answer := answered(&llm.Answer{Err: none, Path: llm.PathNone, Fallback: none.Message})
			return q, &answer, nil
		}
		return q, nil, err
	}
	return task{class: Read, do: func(ctx context.Context) (any, error) {
		q, gap, err := put(ctx)
		if err != nil || gap != nil {
			return gap, err
		}
		return g.ask(ctx, name, q), nil
	}, dry: func(ctx context.Context) (any, *plugin.Change, error) {
		q, gap, err := put(ctx)
		if err != nil || gap != nil {
			return gap, nil, err
		}
		return g.askDry(&q)
	}}, nil
}

// askDry answers a query that is put to no model: a model that cannot be
// reached now is what plugins know how to go on without.
func (g *grant) askDry(q *llm.Query) (any, *plugin.Change, error) {
	why := &llm.Error{Kind: llm.Unreachable, Message: "this is a dry run, which asks no model"}
	g.heard([]string{plugin.Untrusted})
	size := len(q.Prompt) + len(q.System)
	for _, item := range q.Grounding {
		size += len(item)
	}
	return answered(&llm.Answer{Err: why, Path: llm.PathNone}),
		&plugin.Change{Target: "model", After: shown(map[string]string{"prompt": q.Prompt}), Summary: fmt.Sprintf("not asked, with %d bytes", size)}, nil
}

// ask puts a query to a model. That it failed is an answer too: plugins of the
// contract look at ok.
func (g *grant) ask(ctx context.Context, name string, q llm.Query) queried {
	m := g.target.Manifest
	began := time.Now()
	a := g.broker.Models.Ask(ctx, llm.Caller{
		Tenant: g.call.Tenant, Principal: g.call.Principal.Member(), Session: g.call.Session, Call: g.call.ID,
		Operation: g.target.Name(), Plugin: m.Name, Version: m.Version, Labels: plugin.Labels(g.call.Labels, g.Labels()), Usage: &g.usage,
	}, q)
	if a.Attempts > 0 {
		g.used.Store(true)
		g.told(name, &q, &a, time.Since(began))
	}
	return answered(&a)
}

// told reports a query that went outside.
func (g *grant) told(name string, q *llm.Query, a *llm.Answer, took time.Duration) {
	if g.broker.Used == nil {
		return
	}
	use := Use{
		Target: g.target, Call: g.call, Method: name, Request: "model " + a.Model, Outcome: "ok", Attempts: a.Attempts,
		Sent: len(q.Prompt) + len(q.System), Received: len(a.Text), Took: took,
	}
	if !a.OK {
		use.Outcome = a.Err.Error()
	}
	g.broker.Used(use)
}

// answered is an answer as a plugin gets it.
func answered(a *llm.Answer) queried {
	out := queried{OK: a.OK, Model: orNull(a.Model), Path: orNull(a.Path), Fallback: orNull(a.Fallback)}
	if a.Usage.Known() && !a.Estimated {
		out.Usage = &tokenUsage{a.Usage.In, a.Usage.Out, a.Usage.In + a.Usage.Out}
	}
	if a.OK {
		out.Text = &a.Text
		return out
	}
	text := a.Err.Error()
	if a.Err.Kind == llm.Auth { // where keys are is not a plugin's to know
		text = string(llm.Auth) + ": the provider's key is missing or was not accepted; an administrator sees why with 'mortise models test'"
	}
	out.Error = &text
	return out
}

// Metrics returns what the call used of models, and which hosts were asked where
// an administrator led them: nil where it asked neither.
func (g *grant) Metrics() plugin.Metrics {
	m := g.usage.Metrics()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.mapped) > 0 {
		if m == nil {
			m = plugin.Metrics{}
		}
		m["http_mapped"] = strings.Join(g.mapped, ",")
	}
	return m
}
