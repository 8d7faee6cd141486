-- Memories are found by the index of words that passages are found by. Its rows have
-- the id of what they are of, so that a memory gets one that no VACUUM changes; in the
-- index it is negative. What is there already is indexed as it is written.

-- +goose Up
ALTER TABLE memories RENAME TO memories_before;
CREATE TABLE memories (
	id         INTEGER PRIMARY KEY,
	tenant     TEXT    NOT NULL,
	agent      TEXT    NOT NULL,
	key        TEXT    NOT NULL,
	content    TEXT    NOT NULL,
	labels     TEXT    NOT NULL, -- a JSON array
	updated_at INTEGER NOT NULL,
	mac        TEXT    NOT NULL DEFAULT '',
	UNIQUE (tenant, agent, key)
);
INSERT INTO memories (tenant, agent, key, content, labels, updated_at, mac)
	SELECT tenant, agent, key, content, labels, updated_at, mac FROM memories_before;
DROP TABLE memories_before;
INSERT INTO kb_index (terms, scope, rowid)
	SELECT key || ' ' || content, lower('m' || hex(tenant) || 'm' || hex(agent)), -id FROM memories;

-- What came in is forgotten by its age.
CREATE INDEX deliveries_age ON deliveries (at);
