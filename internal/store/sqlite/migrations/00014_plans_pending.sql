-- Plans that wait for a person or a step: what can go on among them is asked for often.

-- +goose Up
CREATE INDEX plans_pending ON plans (id) WHERE state = 'pending_approval';
