-- A row of a table WITHOUT ROWID that is longer than a quarter of a page has a page of its own
-- for the rest, and an entry is: four times the disk, and three times the work, of a table with
-- row ids. Its rows come in the order of the chain as well, so it appends at one place.

-- +goose Up
CREATE TABLE entries_by_row (
	chain     INTEGER NOT NULL,
	seq       INTEGER NOT NULL,
	at        INTEGER NOT NULL,
	tenant    TEXT    NOT NULL,
	kind      TEXT    NOT NULL,
	subject   TEXT    NOT NULL,
	principal TEXT    NOT NULL,
	body      TEXT    NOT NULL,
	prev      TEXT    NOT NULL,
	hash      TEXT    NOT NULL,
	PRIMARY KEY (chain, seq)
);
INSERT INTO entries_by_row SELECT chain, seq, at, tenant, kind, subject, principal, body, prev, hash FROM entries ORDER BY chain, seq;
DROP TABLE entries;
ALTER TABLE entries_by_row RENAME TO entries;
CREATE INDEX entries_subject ON entries (subject);
