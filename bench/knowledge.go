package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
)

const (
	adders  = 8   // who put documents there at the same time
	queries = 200 // of two words each
)

// knowledge is table K: documents into a knowledge base on a disk, the same again,
// one of them changed, and searches, beside a bare FTS5 table.
func knowledge(ctx context.Context, l *lab) ([]table, error) {
	documents := 10_000
	if l.quick {
		documents = 300
	}
	texts := zipfTexts(documents)
	floor, err := l.bareIndex(ctx, texts)
	if err != nil {
		return nil, err
	}
	ours, err := l.knowledgeBase(ctx, texts)
	if err != nil {
		return nil, err
	}
	p50, p99 := func(d []time.Duration) float64 { return quantile(d, 0.50) }, func(d []time.Duration) float64 { return quantile(d, 0.99) }
	first, second := ours.first.Seconds(), ours.second.Seconds()
	return []table{
		{Title: fmt.Sprintf("K1. %d documents of 200 words into a knowledge base, on SQLite", documents), Unit: "s", Rows: []row{
			judged("floor: a bare FTS5 table, a transaction each, one after the other", floor.first.Seconds(), 1, target{}),
			judged(fmt.Sprintf("knowledge base, %d at a time", adders), first, first/floor.first.Seconds(), target{}),
		}},
		{Title: "K2. The same documents again (x the first time)", Unit: "s", Rows: []row{
			judged("the first time", first, 1, target{}),
			judged("again, the median of five times", second, second/first, atMostRatio(0.1)),
		}},
		{Title: "K3. What was written, compared in the tables themselves", Unit: "rows", Rows: []row{
			judged(fmt.Sprintf("of %d in the tables of knowledge bases, changed by all that", ours.rows), float64(ours.touched), 0, atMost(0)),
			judged("of the other documents' passages, changed by a document that changed", float64(ours.others), 0, atMost(0)),
			judged(fmt.Sprintf("passages of that document that are new, of %d", ours.its), float64(ours.renewed), 0,
				target{"all", func(figure, _ float64) bool { return int(figure) == ours.its && ours.its > 0 }}),
		}},
		{Title: fmt.Sprintf("K4. Search among them, two words, the best ten, %d queries, one caller", queries), Unit: "ms", Rows: []row{
			judged("floor: the bare FTS5 table, p50", p50(floor.searches), 1, target{}),
			judged("knowledge base, p50", p50(ours.searches), p50(ours.searches)/p50(floor.searches), atMost(50)),
			judged("floor: the bare FTS5 table, p99", p99(floor.searches), 1, target{}),
			judged("knowledge base, p99", p99(ours.searches), p99(ours.searches)/p99(floor.searches), target{}),
		}},
	}, nil
}

// quantile returns a quantile of durations in milliseconds. It sorts them.
func quantile(all []time.Duration, q float64) float64 {
	slices.Sort(all)
	return float64(all[min(len(all)-1, int(q*float64(len(all))))]) / float64(time.Millisecond)
}

// zipfTexts are texts of 200 words, about 1,500 characters, of 5,000 words that
// are as frequent as words are: the most frequent is in nearly all of them.
func zipfTexts(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 2, 4999)
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for k := range 200 {
			fmt.Fprintf(&b, "word%d", zipf.Uint64())
			if k%11 == 10 {
				b.WriteString(". ")
			} else {
				b.WriteByte(' ')
			}
		}
		texts[i] = b.String()
	}
	return texts
}

// asked are the two words of a query.
func asked(i int) (string, string) {
	return fmt.Sprintf("word%d", 10+i), fmt.Sprintf("word%d", 20+(37*i)%4000)
}

// A shelf is what one contestant took.
type shelf struct {
	first, second time.Duration
	searches      []time.Duration

	rows, touched, others, renewed, its int
}

// bareIndex is the floor: the documents in one FTS5 table, with statements
// prepared once and the settings of the store.
func (l *lab) bareIndex(ctx context.Context, texts []string) (s shelf, err error) {
	dir, err := os.MkdirTemp(l.dir, "fts-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bare.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return s, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `CREATE VIRTUAL TABLE documents USING fts5 (title, text, tokenize="unicode61 remove_diacritics 0")`); err != nil {
		return s, err
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO documents (title, text) VALUES (?, ?)`)
	if err != nil {
		return s, err
	}
	defer insert.Close()
	began := time.Now()
	for i, text := range texts {
		if _, err := insert.ExecContext(ctx, fmt.Sprint("document ", i), text); err != nil {
			return s, err
		}
	}
	s.first = time.Since(began)
	search, err := db.PrepareContext(ctx, `SELECT title, text FROM documents WHERE documents MATCH ? ORDER BY rank LIMIT 10`)
	if err != nil {
		return s, err
	}
	defer search.Close()
	for i := range queries {
		one, two := asked(i)
		began := time.Now()
		n, err := count(search.QueryContext(ctx, one+" OR "+two))
		if err != nil || n == 0 {
			return s, fmt.Errorf("%s %s finds %d rows: %w", one, two, n, err)
		}
		s.searches = append(s.searches, time.Since(began))
	}
	return s, nil
}

// count reads all rows of two texts.
func count(rows *sql.Rows, err error) (n int, _ error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		var title, text string
		if err := rows.Scan(&title, &text); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// knowledgeBase is the real thing: the store of a host, in a file.
func (l *lab) knowledgeBase(ctx context.Context, texts []string) (s shelf, err error) {
	dir, err := os.MkdirTemp(l.dir, "kb-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	st, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	bases := kb.New(kb.Options{Store: st})
	if _, err := bases.Create(ctx, "t", kb.Base{ID: "notes"}); err != nil {
		return s, err
	}
	source := func(i int, text string) kb.Source {
		return kb.Source{KB: "notes", ID: fmt.Sprint("source ", i), Title: fmt.Sprint("document ", i), Text: text, By: kb.By{Plugin: "bench", Principal: "ada", Call: "c"}}
	}
	pass := func(skipped bool) (time.Duration, error) {
		began := time.Now()
		next, failed := make(chan int), make(chan error, adders)
		var all sync.WaitGroup
		for range adders {
			all.Go(func() {
				for i := range next {
					got, err := bases.Ingest(ctx, "t", source(i, texts[i]))
					if err == nil && got.Skipped != skipped {
						err = fmt.Errorf("document %d is skipped: %t", i, got.Skipped)
					}
					if err != nil {
						select {
						case failed <- err:
						default:
						}
					}
				}
			})
		}
		for i := range texts {
			next <- i
		}
		close(next)
		all.Wait()
		select {
		case err := <-failed:
			return 0, err
		default:
			return time.Since(began), nil
		}
	}
	if s.first, err = pass(false); err != nil {
		return s, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.File)+"?_pragma=query_only(1)")
	if err != nil {
		return s, err
	}
	defer db.Close()
	before, err := contents(ctx, db)
	if err != nil {
		return s, err
	}
	var again []time.Duration
	for range 5 {
		took, err := pass(true)
		if err != nil {
			return s, err
		}
		again = append(again, took)
	}
	slices.Sort(again)
	s.second = again[len(again)/2]
	after, err := contents(ctx, db)
	if err != nil {
		return s, err
	}
	s.rows, s.touched = len(after), differences(before, after, "")
	for i := range queries {
		one, two := asked(i)
		began := time.Now()
		hits, err := bases.Search(ctx, "t", kb.Query{KBs: []string{"notes"}, Text: one + " " + two})
		if err != nil || len(hits) == 0 {
			return s, fmt.Errorf("%s %s finds %d passages: %w", one, two, len(hits), err)
		}
		s.searches = append(s.searches, time.Since(began))
	}
	return s, s.change(ctx, bases, db, source(len(texts)/2, "Another text. "+texts[len(texts)/2]))
}

// change puts a changed document in the place of the old one, and sees which
// passages are others then, by their ids.
func (s *shelf) change(ctx context.Context, bases *kb.Bases, db *sql.DB, to kb.Source) error {
	before, err := contents(ctx, db)
	if err != nil {
		return err
	}
	got, err := bases.Ingest(ctx, "t", to)
	if err != nil || got.Skipped {
		return fmt.Errorf("the changed document: %+v, %w", got, err)
	}
	after, err := contents(ctx, db)
	if err != nil {
		return err
	}
	for id, of := range after {
		if table, document, _ := strings.Cut(of.of, " "); table == "kb_chunks" && document == got.DocumentID {
			if s.its++; before[id] != of {
				s.renewed++
			}
		}
	}
	s.others = differences(before, after, got.DocumentID)
	return nil
}

// A record is one row: what it is of, and the hash of all its columns.
type record struct{ of, hash string }

// contents returns all rows of the tables of knowledge bases, the index with
// them, by table and row id.
func contents(ctx context.Context, db *sql.DB) (map[string]record, error) {
	all := map[string]record{}
	for name, of := range map[string]string{
		"kbs": "''", "kb_documents": "''", "kb_chunks": "document_id",
		"kb_index_data": "''", "kb_index_idx": "''", "kb_index_docsize": "''", "kb_index_config": "''",
	} {
		id := map[string]string{"kb_index_idx": "segid || '/' || hex(term)", "kb_index_config": "k"}[name]
		if id == "" {
			id = "rowid"
		}
		rows, err := db.QueryContext(ctx, "SELECT "+id+", "+of+", * FROM "+name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		columns, err := rows.Columns()
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			sum := sha256.New()
			for _, v := range values {
				fmt.Fprintf(sum, "%T %v\n", v, v)
			}
			all[fmt.Sprint(name, " ", values[0])] = record{fmt.Sprint(name, " ", values[1]), hex.EncodeToString(sum.Sum(nil))}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// differences counts the rows that are not in both alike: all of them or, where
// a document is named, the passages of all others.
func differences(before, after map[string]record, but string) (n int) {
	counts := func(r record) bool {
		table, document, _ := strings.Cut(r.of, " ")
		return but == "" || table == "kb_chunks" && document != but
	}
	for id, was := range before {
		if counts(was) && after[id] != was {
			n++
		}
	}
	for id, is := range after {
		if _, was := before[id]; !was && counts(is) {
			n++
		}
	}
	return n
}
