package service

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// A Class says how far the consequences of a method reach, and so who may use
// it. Docs/services.md has the table.
type Class string

// The classes.
const (
	Own      Class = "own"      // what the plugin keeps for itself and no other plugin sees; any kind may
	Read     Class = "read"     // changes nothing anywhere; any kind may
	Local    Class = "local"    // changes what the host keeps; an operator that declares the effect may
	External Class = "external" // changes something outside the host; an operator that declares the effect may
	Nested   Class = "nested"   // a call of its own, judged as such: below a tool or an agent, one without effects
)

// A task is a request that was understood: what it may cause, and how to do it.
type task struct {
	class  Class
	effect string // its name, where the class is local or external
	do     func(ctx context.Context) (any, error)

	// commit is what a local effect does, in place of do: a change of the store
	// that is one transaction with its place in the journal. An error that has a
	// code is a refusal, before which nothing was written. It may be run again.
	commit func(ctx context.Context, tx ledger.Tx) (any, error)
	before func(ctx context.Context) error // what has to be there first; may be nil

	// request stands in the journal in place of the arguments, where these are
	// not to be told from a hash; nil where they are.
	request json.RawMessage

	// repeat gives the request the key by which the other side tells a
	// repetition; nil where the other side cannot. It is called before do.
	repeat func(key string)

	// dry answers the task in a dry run. It is nil for nested calls and for tasks that
	// only read inside the host.
	dry dryHandler
}

// A method understands one kind of request. It does nothing yet.
type method func(g *grant, args json.RawMessage) (task, error)

// methods are all there are, each with its class and its effect.
var methods = map[string]method{
	"cache.get":    withDry(always(Own, "", cacheGet), cacheGetDry),
	"cache.set":    withDry(always(Own, "", cacheSet), cacheSetDry),
	"cache.delete": withDry(always(Own, "", cacheDelete), cacheDeleteDry),
	fetchName:      fetchTask, // GET and HEAD are read; all others external, http_write
	operationsCall: operationTask,

	"session.open":    always(Read, "", sessionOpen),
	artifactsList:     always(Read, "", artifactsListed),
	artifactsRegister: registerTask, // own: part of the call's answer
	referenceGet:      always(Read, "", referenceLookUp),

	storageGet:      always(Read, "", storageRead),
	storagePut:      storagePutTask, // local, storage_write
	storageDelete:   storageDeleteTask,
	cursorGet:       always(Read, "", cursorRead),
	cursorSet:       cursorSetTask, // local, cursor_write
	cursorDelete:    cursorDeleteTask,
	secretsGet:      secretGetTask, // read
	secretsSet:      secretSetTask, // local, secret_write
	secretsDelete:   secretDeleteTask,
	rateTake:        withDry(always(Own, "", rateTaken), rateTakenDry),
	identityCurrent: always(Read, "", identityOfCaller),
	identityLookup:  always(Read, "", identityFound),
	identityPrimary: always(Read, "", identityEmail),
	authResolve:     withDry(always(Read, "", authResolved), authResolvedDry),
	auditLog:        withDry(always(Own, "", audited), auditedDry),

	kbDocument:        kbDocumentTask, // local, kb_write
	kbEmail:           kbEmailTask,
	kbThread:          kbThreadTask,
	kbText:            kbTextTask,
	kbObject:          kbObjectTask,
	kbDelete:          kbDeleteTask,
	kbSearchChunks:    always(Read, "", kbChunksFound),
	kbSearchDocuments: always(Read, "", kbDocumentsFound),
	kbGetDocument:     always(Read, "", kbDocumentRead(kbGetDocument)),
	kbFindChunks:      always(Read, "", kbFound(kbFindChunks, kb.OfChunks)),
	kbFindDocuments:   always(Read, "", kbFound(kbFindDocuments, kb.OfDocuments)),
	kbFindDocument:    always(Read, "", kbDocumentFound),
	queryList:         always(Read, "", queryListed),
	queryGet:          always(Read, "", kbDocumentRead(queryGet)),
	ocrText:           always(Read, "", ocrExtract),

	schedulerEnqueue: enqueueTask, // local, schedule_write

	llmText:       llmTextTask, // read: what it costs is bounded by budgets
	llmMultimodal: llmMultimodalTask,
	llmDocument:   llmDocumentTask,
	llmSupports:   always(Read, "", llmSupported),
}

// always makes a method of the same class and effect whatever its arguments.
func always(class Class, effect string, do func(g *grant, ctx context.Context, args json.RawMessage) (any, error)) method {
	return func(g *grant, args json.RawMessage) (task, error) {
		return task{class: class, effect: effect, do: func(ctx context.Context) (any, error) { return do(g, ctx, args) }}, nil
	}
}

// permit holds a task against what the operation at work is and declares:
// "Agents can think, operators can do, tools can compute, adapters can
// translate" (kernel contracts, 5.0). A class it does not know is refused.
func permit(t *plugin.Target, call *plugin.Call, name string, asked task) error {
	switch asked.class {
	case Own, Read, Nested:
		return nil
	}
	op := t.Operation
	switch {
	case asked.effect == "":
		return plugin.Errorf(plugin.CodeEffectUndeclared, "%s: it would have an effect that has no name", name)
	case op.Mapped != nil && !slices.Contains(op.Effects, asked.effect):
		return plugin.Errorf(plugin.CodeEffectUndeclared, "%s: it has the effect %s, which %s does not have by an administrator's word (mortise plugins map)", name, asked.effect, t.Name())
	case op.Kind != plugin.Operator:
		return plugin.Errorf(plugin.CodeEffectUndeclared,
			"%s: it has the effect %s, and %s is of kind %s; only an operator may cause effects: {kind: operator, effects: [%s]} under operations: %s: in the manifest",
			name, asked.effect, t.Name(), op.Kind, asked.effect, op.Name)
	case call.EffectFree:
		return plugin.Errorf(plugin.CodeEffectUndeclared, "%s: it has the effect %s, and %s was asked for by a tool or an agent, below which nothing has effects",
			name, asked.effect, t.Name())
	case !slices.Contains(op.Effects, asked.effect):
		return plugin.Errorf(plugin.CodeEffectUndeclared, "%s: it has the effect %s, which %s does not declare; add effects: [%s] under operations: %s: in the manifest",
			name, asked.effect, t.Name(), effectList(op.Effects, asked.effect), op.Name)
	}
	return nil
}

// effectList is the manifest's list with one more.
func effectList(declared []string, effect string) string {
	text := ""
	for _, name := range declared {
		text += name + ", "
	}
	return text + effect
}

// effectFree reports whether nothing that is done on behalf of a call may have
// an effect: it is a tool or an agent, or runs below one.
func effectFree(t *plugin.Target, call *plugin.Call) bool {
	return call.EffectFree || t.Operation.Kind == plugin.Tool || t.Operation.Kind == plugin.Agent
}
