-- What is known: documents, and the passages of them that are found.

-- +goose Up
CREATE TABLE kbs (
	tenant      TEXT NOT NULL,
	id          TEXT NOT NULL,
	name        TEXT NOT NULL,
	description TEXT NOT NULL,
	labels      TEXT NOT NULL, -- a JSON array
	created_by  TEXT NOT NULL,
	created_at  INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
);

CREATE TABLE kb_documents (
	tenant       TEXT NOT NULL,
	kb_id        TEXT NOT NULL,
	id           TEXT NOT NULL,
	source_id    TEXT NOT NULL,
	source_type  TEXT NOT NULL,
	object_id    TEXT NOT NULL,
	title        TEXT NOT NULL,
	filename     TEXT NOT NULL,
	mime         TEXT NOT NULL,
	url          TEXT NOT NULL,
	content_hash TEXT NOT NULL,
	words        INTEGER NOT NULL,
	characters   INTEGER NOT NULL,
	chunks       INTEGER NOT NULL,
	extraction   TEXT NOT NULL, -- JSON
	attributes   TEXT NOT NULL, -- JSON
	labels       TEXT NOT NULL, -- a JSON array
	principal    TEXT NOT NULL,
	call_id      TEXT NOT NULL,
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	text         TEXT NOT NULL,
	PRIMARY KEY (tenant, kb_id, id),
	UNIQUE (tenant, kb_id, source_id)
);
CREATE INDEX kb_documents_object ON kb_documents (tenant, object_id);

CREATE TABLE kb_chunks (
	id          INTEGER PRIMARY KEY,
	tenant      TEXT NOT NULL,
	kb_id       TEXT NOT NULL,
	document_id TEXT NOT NULL,
	n           INTEGER NOT NULL,
	start       INTEGER NOT NULL, -- in the document's text, in characters
	text        TEXT NOT NULL,
	embedding   BLOB, -- little-endian float32
	UNIQUE (tenant, kb_id, document_id, n)
);

-- The index of words. It keeps no text of its own. The scope is one word for
-- each knowledge base of each tenant, so that no others are looked at.
CREATE VIRTUAL TABLE kb_index USING fts5 (terms, scope, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0");
