-- What messages, knowledge bases, stored values and memories are signed with.

-- +goose Up
ALTER TABLE messages ADD COLUMN mac TEXT NOT NULL DEFAULT '';
ALTER TABLE kbs ADD COLUMN mac TEXT NOT NULL DEFAULT '';
ALTER TABLE kb_documents ADD COLUMN text_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE kb_documents ADD COLUMN mac TEXT NOT NULL DEFAULT '';
ALTER TABLE kb_chunks ADD COLUMN mac TEXT NOT NULL DEFAULT '';
ALTER TABLE kv ADD COLUMN mac TEXT NOT NULL DEFAULT '';
ALTER TABLE memories ADD COLUMN mac TEXT NOT NULL DEFAULT '';
