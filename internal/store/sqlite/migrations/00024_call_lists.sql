-- Lists of calls are read a page at a time: of a state that is rare, and of one caller.

-- +goose Up
CREATE INDEX calls_state ON calls (tenant, state, id) WHERE state <> 'succeeded';
CREATE INDEX calls_principal ON calls (tenant, principal, id);
