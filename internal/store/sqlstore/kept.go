package sqlstore

import (
	"context"
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/internal/store"
)

// A keptTable is a table whose rows bear a MAC each, read page by page.
type keptTable struct {
	name, columns string
	key           []string // its primary key
	read          func(r *reader, q *query) (rows []keptIn, err error)
}

// A keptIn is a row of it, with the values of its primary key.
type keptIn struct {
	at    []any
	proof []store.Proof
	text  string // of a document, its hash
}

func keptScan[T store.Kept](scan func(*record, *T) error, at func(T) []any) func(r *reader, q *query) ([]keptIn, error) {
	return func(r *reader, q *query) (kept []keptIn, err error) {
		for row, err := range rows(context.Background(), r, q, scan) {
			if err != nil {
				return nil, err
			}
			in := keptIn{at: at(row), proof: row.Proofs()}
			if d, is := any(row).(store.DocumentRow); is {
				in.text = d.TextHash
			}
			kept = append(kept, in)
		}
		return kept, nil
	}
}

// A passage is one with its place.
type passage struct {
	store.ChunkRow
	tenant, kb, document string
}

// Proofs implements [store.Kept].
func (p passage) Proofs() []store.Proof {
	return []store.Proof{p.ProofIn(p.tenant, p.kb, p.document)}
}

// A stepOf is a step with how many its plan has.
type stepOf struct {
	store.StepRow
	steps int64
}

// Proofs implements [store.Kept].
func (s stepOf) Proofs() []store.Proof {
	return []store.Proof{{Table: "steps", Digest: s.DigestOf(s.steps), MAC: s.MAC}}
}

var keptTables = []keptTable{
	{"messages", messageColumns, []string{"tenant", "session_id", "n"},
		keptScan(scanMessage, func(m store.MessageRow) []any { return []any{m.Tenant, m.SessionID, m.N} })},
	{"conversations", conversationColumns, []string{"tenant", "session_id"},
		keptScan(scanConversation, func(c store.ConversationRow) []any { return []any{c.Tenant, c.SessionID} })},
	{"steps", stepColumns + `, (SELECT count(*) FROM steps AS planned WHERE planned.tenant = steps.tenant AND planned.plan_id = steps.plan_id)`,
		[]string{"tenant", "plan_id", "n"},
		keptScan(func(rows *record, s *stepOf) error { return scanStepWith(rows, &s.StepRow, &s.steps) },
			func(s stepOf) []any { return []any{s.Tenant, s.PlanID, s.N} })},
	{"kbs", kbColumns, []string{"tenant", "id"},
		keptScan(scanKB, func(k store.KBRow) []any { return []any{k.Tenant, k.ID} })},
	{"kb_documents", documentColumns + ", text", []string{"tenant", "kb_id", "id"},
		keptScan(scanWhole, func(d store.DocumentRow) []any { return []any{d.Tenant, d.KB, d.ID} })},
	{"kb_chunks", "tenant, kb_id, document_id, n, start, text, mac", []string{"tenant", "kb_id", "document_id", "n"},
		keptScan(func(rows *record, p *passage) error {
			return rows.Scan(&p.tenant, &p.kb, &p.document, &p.N, &p.Start, &p.Text, &p.MAC)
		}, func(p passage) []any { return []any{p.tenant, p.kb, p.document, p.N} })},
	{"kv", kvColumns, []string{"tenant", "owner", "scope", "namespace", "key"},
		keptScan(scanKV, func(v store.KVRow) []any { return []any{v.Tenant, v.Owner, v.Scope, v.Namespace, v.Key} })},
	{"memories", memoryColumns, []string{"tenant", "agent", "key"},
		keptScan(scanMemory, func(m store.MemoryRow) []any { return []any{m.Tenant, m.Agent, m.Key} })},
}

// keptPage is how many rows are held at a time: a document may be large.
const keptPage = 50

// each calls fn for the rows of a table, none of which is being read meanwhile.
func (k *keptTable) each(r *reader, fn func(keptIn) error) error {
	key := strings.Join(k.key, ", ")
	var after []any
	for {
		q := selectFrom(k.columns, k.name)
		if after != nil {
			q.where("("+key+") > (?"+strings.Repeat(", ?", len(k.key)-1)+")", after...)
		}
		q.orderBy(key)
		q.limit(keptPage)
		page, err := k.read(r, q)
		if err != nil {
			return err
		}
		for _, row := range page {
			if err := fn(row); err != nil {
				return err
			}
		}
		if len(page) < keptPage {
			return nil
		}
		after = page[len(page)-1].at
	}
}

// CheckKept implements [store.Reader].
func (r *reader) CheckKept(ctx context.Context, key *store.Key) error {
	for i := range keptTables {
		if err := keptTables[i].each(r, func(row keptIn) error { return errors.Join(ctx.Err(), store.CheckKept(key, row.proof...)) }); err != nil {
			return err
		}
	}
	return nil
}

// signRows gives each row of a table that an earlier release did not sign its MAC, as it
// is. What that release signed is not signed again.
func (t *tx) signRows(key *store.Key) error {
	for i := range keptTables {
		k := &keptTables[i]
		if unsigned, err := store.UnsignedRows(k.name)(context.Background(), &t.reader, key); err != nil {
			return err
		} else if !unsigned {
			continue
		}
		where := " WHERE " + strings.Join(k.key, " = ? AND ") + " = ?"
		if err := k.each(&t.reader, func(row keptIn) error {
			for _, p := range row.proof {
				set, args := "mac = ?", []any{key.SignKept(p.Digest)}
				if row.text != "" {
					set, args = set+", text_hash = ?", append(args, row.text)
				}
				if _, err := t.Exec("UPDATE "+k.name+" SET "+set+where, append(args, row.at...)...); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
