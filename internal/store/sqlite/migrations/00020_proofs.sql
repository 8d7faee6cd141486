-- Who has seen a secret, or said whose an account is, and the groups that a sign-in gave.

-- +goose Up
ALTER TABLE users ADD COLUMN invited_by TEXT NOT NULL DEFAULT ''; -- the asker who has seen the secret of the invitation
ALTER TABLE browser_sessions ADD COLUMN given_groups TEXT NOT NULL DEFAULT ''; -- a JSON array, or nothing
ALTER TABLE identities ADD COLUMN asker TEXT NOT NULL DEFAULT ''; -- who linked them
