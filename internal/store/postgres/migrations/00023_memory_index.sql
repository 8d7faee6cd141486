-- Memories are found by the words in them, as passages are. What is there already is
-- indexed as it is written.

-- +goose Up
ALTER TABLE memories ADD COLUMN terms tsvector;
UPDATE memories SET terms = to_tsvector('simple', key || ' ' || content);
CREATE INDEX memories_terms ON memories USING gin (terms);

-- What came in is forgotten by its age.
CREATE INDEX deliveries_age ON deliveries (at);
