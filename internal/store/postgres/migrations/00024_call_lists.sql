-- Lists of calls are read a page at a time: of a state that is rare, of one caller, and of
-- decisions about tools that other programs run.

-- +goose Up
CREATE INDEX calls_state ON calls (tenant, state, id) WHERE state <> 'succeeded';
CREATE INDEX calls_principal ON calls (tenant, principal, id);
CREATE INDEX calls_decision ON calls (tenant, id) WHERE origin = 'decision';
