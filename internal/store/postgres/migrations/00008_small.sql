-- Small artifacts have their bytes beside them; of all others these are elsewhere.

-- +goose Up
ALTER TABLE artifacts ADD COLUMN data BYTEA;
