-- What is known: documents, and the passages of them that are found.

-- +goose Up
CREATE TABLE kbs (
	tenant      TEXT COLLATE "C" NOT NULL,
	id          TEXT COLLATE "C" NOT NULL,
	name        TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C" NOT NULL,
	labels      TEXT COLLATE "C" NOT NULL, -- a JSON array
	created_by  TEXT COLLATE "C" NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (tenant, id)
);

CREATE TABLE kb_documents (
	tenant       TEXT COLLATE "C" NOT NULL,
	kb_id        TEXT COLLATE "C" NOT NULL,
	id           TEXT COLLATE "C" NOT NULL,
	source_id    TEXT COLLATE "C" NOT NULL,
	source_type  TEXT COLLATE "C" NOT NULL,
	object_id    TEXT COLLATE "C" NOT NULL,
	title        TEXT COLLATE "C" NOT NULL,
	filename     TEXT COLLATE "C" NOT NULL,
	mime         TEXT COLLATE "C" NOT NULL,
	url          TEXT COLLATE "C" NOT NULL,
	content_hash TEXT COLLATE "C" NOT NULL,
	words        BIGINT NOT NULL,
	characters   BIGINT NOT NULL,
	chunks       BIGINT NOT NULL,
	extraction   TEXT COLLATE "C" NOT NULL, -- JSON
	attributes   TEXT COLLATE "C" NOT NULL, -- JSON
	labels       TEXT COLLATE "C" NOT NULL, -- a JSON array
	principal    TEXT COLLATE "C" NOT NULL,
	call_id      TEXT COLLATE "C" NOT NULL,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	text         TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (tenant, kb_id, id),
	UNIQUE (tenant, kb_id, source_id)
);
CREATE INDEX kb_documents_object ON kb_documents (tenant, object_id);

CREATE TABLE kb_chunks (
	tenant      TEXT COLLATE "C" NOT NULL,
	kb_id       TEXT COLLATE "C" NOT NULL,
	document_id TEXT COLLATE "C" NOT NULL,
	n           BIGINT NOT NULL,
	start       BIGINT NOT NULL, -- in the document's text, in characters
	text        TEXT COLLATE "C" NOT NULL,
	embedding   BYTEA, -- little-endian float32
	terms       TSVECTOR, -- the words by which it is found
	PRIMARY KEY (tenant, kb_id, document_id, n)
);
CREATE INDEX kb_chunks_terms ON kb_chunks USING gin (terms);
