-- +goose Up

-- How many workers were lost while they served an attempt; the third loss ends it.
ALTER TABLE publications ADD COLUMN losses integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE publications DROP COLUMN losses;
