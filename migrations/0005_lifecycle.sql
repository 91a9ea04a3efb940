-- +goose Up

-- made_at is when the row's container, its generation, was begun: it is replaced when it is too old.
-- unsaved says that the work tree may hold what no checkpoint has; a stop makes one first.
ALTER TABLE sandboxes
    ADD COLUMN made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN unsaved boolean     NOT NULL DEFAULT false;

UPDATE sandboxes SET made_at = created_at, unsaved = state = 'ready';
