-- By which model a passage was embedded: vectors of two are never compared.

-- +goose Up
ALTER TABLE kb_chunks ADD COLUMN model TEXT NOT NULL DEFAULT ''; -- '' where there is no embedding
