-- +goose Up

-- Sandboxes that were started before a session needs one. A row is written before anything of it is
-- made and deleted after all of it is gone. A claim moves it to sandboxes, with its id, in one
-- transaction: at any moment exactly one of the two tables speaks for a container.
CREATE TABLE pool_members (
    id          uuid        PRIMARY KEY,
    host        text        NOT NULL,
    state       text        NOT NULL CONSTRAINT pool_members_state CHECK (state IN ('filling', 'ready', 'discarded')),
    -- What it was made with. A member of another spec than today's is of no use.
    spec        text        NOT NULL,
    runtime_ref text        NOT NULL DEFAULT '',
    volume      text        NOT NULL DEFAULT '',
    image       text        NOT NULL DEFAULT '',
    -- When a filling one counts as left behind by a worker that died.
    fill_until  timestamptz NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pool_members_ready CHECK (state <> 'ready' OR runtime_ref <> '' AND volume <> '')
);
CREATE INDEX pool_members_on_host ON pool_members (host, created_at);
