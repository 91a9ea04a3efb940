-- +goose Up

-- The browser's cookie sessions (scs). Sign-in itself is login_sessions, which can be revoked.
CREATE TABLE sessions (
    token  text        PRIMARY KEY,
    data   bytea       NOT NULL,
    expiry timestamptz NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expiry);

CREATE TABLE users (
    id         uuid        PRIMARY KEY,
    github_id  bigint      NOT NULL CONSTRAINT users_github_id UNIQUE,
    login      text        NOT NULL,
    name       text        NOT NULL DEFAULT '',
    role       text        NOT NULL CONSTRAINT users_role CHECK (role IN ('member', 'admin')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Tokens are sealed by the application; the associated data binds each to its row and column.
CREATE TABLE user_tokens (
    user_id            uuid        PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    access             bytea       NOT NULL,
    refresh            bytea       NOT NULL,
    expires_at         timestamptz,
    refresh_expires_at timestamptz,
    version            bigint      NOT NULL,
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE login_sessions (
    id           uuid        PRIMARY KEY,
    user_id      uuid        NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at     timestamptz
);
CREATE INDEX login_sessions_open ON login_sessions (user_id) WHERE ended_at IS NULL;

-- Id 0 is the installation of local fixture repositories.
CREATE TABLE installations (
    id           bigint      PRIMARY KEY,
    account      text        NOT NULL,
    account_id   bigint      NOT NULL DEFAULT 0,
    account_type text        NOT NULL DEFAULT '' CONSTRAINT installations_account_type CHECK (account_type IN ('', 'User', 'Organization')),
    all_repos    boolean     NOT NULL DEFAULT false,
    suspended    boolean     NOT NULL DEFAULT false,
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE repositories (
    id              bigint      PRIMARY KEY,
    installation_id bigint      NOT NULL REFERENCES installations ON DELETE RESTRICT,
    owner           text        NOT NULL,
    name            text        NOT NULL,
    default_branch  text        NOT NULL DEFAULT '',
    private         boolean     NOT NULL DEFAULT true,
    archived        boolean     NOT NULL DEFAULT false,
    fork            boolean     NOT NULL DEFAULT false,
    language        text        NOT NULL DEFAULT '',
    description     text        NOT NULL DEFAULT '',
    pushed_at       timestamptz,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX repositories_installation ON repositories (installation_id);

CREATE TABLE repository_settings (
    repository_id bigint      PRIMARY KEY REFERENCES repositories ON DELETE CASCADE,
    -- NULL: the operator's BASH_POLICY; else a stricter one that an admin chose.
    bash_policy   text        CONSTRAINT repository_settings_bash_policy CHECK (bash_policy IN ('seed', 'build', 'readonly', 'open')),
    updated_by    uuid        REFERENCES users ON DELETE SET NULL,
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE workers (
    id           uuid        PRIMARY KEY,
    host         text        NOT NULL,
    version      text        NOT NULL,
    capacity     integer     NOT NULL CONSTRAINT workers_capacity CHECK (capacity >= 0),
    status       jsonb       NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX workers_host_alive ON workers (host, heartbeat_at);

-- Every append raises last_sequence. No index covers it and pages keep room, so that the update
-- stays inside its page (HOT). updated_at moves with a session's state only, never with an append.
CREATE TABLE chat_sessions (
    id                 uuid        PRIMARY KEY,
    owner_id           uuid        NOT NULL REFERENCES users ON DELETE RESTRICT,
    repository_id      bigint      NOT NULL REFERENCES repositories ON DELETE RESTRICT,
    base_branch        text        NOT NULL CONSTRAINT chat_sessions_base_branch CHECK (base_branch <> ''),
    base_sha           text        NOT NULL CONSTRAINT chat_sessions_base_sha CHECK (base_sha ~ '^[0-9a-f]{40}$'),
    default_branch_sha text        NOT NULL DEFAULT '' CONSTRAINT chat_sessions_default_branch_sha CHECK (default_branch_sha ~ '^([0-9a-f]{40})?$'),
    branch             text        NOT NULL CONSTRAINT chat_sessions_branch CHECK (branch = 'agent/' || id::text),
    title              text        NOT NULL,
    summary            text        NOT NULL DEFAULT '',
    bash_policy        text        NOT NULL CONSTRAINT chat_sessions_bash_policy CHECK (bash_policy IN ('seed', 'build', 'readonly', 'open')),
    last_sequence      bigint      NOT NULL DEFAULT 0,
    client_key         text        NOT NULL DEFAULT '',
    archived           boolean     NOT NULL DEFAULT false,
    lease_owner        text,
    lease_until        timestamptz,
    -- The message that the lease was taken for. No foreign key: messages point here already.
    lease_message      uuid,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT chat_sessions_lease CHECK ((lease_owner IS NULL) = (lease_until IS NULL) AND (lease_owner IS NOT NULL OR lease_message IS NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX chat_sessions_client_key ON chat_sessions (owner_id, client_key) WHERE client_key <> '';
CREATE INDEX chat_sessions_owner_recent ON chat_sessions (owner_id, updated_at DESC);
CREATE INDEX chat_sessions_recent ON chat_sessions (updated_at DESC);
CREATE INDEX chat_sessions_repository ON chat_sessions (repository_id);
CREATE INDEX chat_sessions_lease_expiry ON chat_sessions (lease_until) WHERE lease_owner IS NOT NULL;

-- messages is the queue too. An answer (role assistant) replies to the person's message.
CREATE TABLE messages (
    id                  uuid        PRIMARY KEY,
    session_id          uuid        NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
    role                text        NOT NULL CONSTRAINT messages_role CHECK (role IN ('user', 'assistant')),
    reply_to            uuid,
    text                text        NOT NULL,
    partial_text        text        NOT NULL DEFAULT '',
    state               text        NOT NULL CONSTRAINT messages_state CHECK (state IN ('queued', 'working', 'completed', 'failed', 'cancelled')),
    client_key          text        NOT NULL DEFAULT '',
    failure_code        text        NOT NULL DEFAULT '',
    failure_text        text        NOT NULL DEFAULT '',
    cancel_requested_at timestamptz,
    preparations        integer     NOT NULL DEFAULT 0,
    model               text        NOT NULL DEFAULT '',
    prompt_hash         text        NOT NULL DEFAULT '',
    steps               integer     NOT NULL DEFAULT 0,
    prompt_tokens       bigint      NOT NULL DEFAULT 0,
    cached_tokens       bigint      NOT NULL DEFAULT 0,
    completion_tokens   bigint      NOT NULL DEFAULT 0,
    cost_usd            numeric,
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at          timestamptz,
    finished_at         timestamptz,
    -- Lets other tables say "a message of the same session" with one foreign key.
    CONSTRAINT messages_of_session UNIQUE (session_id, id),
    CONSTRAINT messages_reply_to FOREIGN KEY (session_id, reply_to) REFERENCES messages (session_id, id) ON DELETE CASCADE,
    CONSTRAINT messages_answer CHECK ((role = 'assistant') = (reply_to IS NOT NULL)),
    CONSTRAINT messages_size CHECK (role <> 'user' OR octet_length(text) <= 49152),
    CONSTRAINT messages_started CHECK (role <> 'user' OR state NOT IN ('working', 'completed') OR started_at IS NOT NULL),
    CONSTRAINT messages_finished CHECK ((state IN ('completed', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT messages_failure CHECK (role <> 'user' OR (state = 'failed') = (failure_code <> ''))
);
CREATE UNIQUE INDEX one_working_message ON messages (session_id) WHERE state = 'working';
CREATE UNIQUE INDEX one_answer_per_message ON messages (session_id, reply_to) WHERE reply_to IS NOT NULL;
CREATE UNIQUE INDEX messages_client_key ON messages (session_id, client_key) WHERE client_key <> '';
CREATE INDEX messages_unfinished ON messages (session_id, created_at) WHERE state IN ('queued', 'working');
CREATE INDEX messages_in_order ON messages (session_id, created_at);

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0]
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_NAME;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER messages_terminal BEFORE UPDATE ON messages FOR EACH ROW
    WHEN (OLD.state IN ('completed', 'failed', 'cancelled') AND NEW.state <> OLD.state)
    EXECUTE FUNCTION refuse_change('a terminal state is terminal');

CREATE TABLE sandboxes (
    id                uuid        PRIMARY KEY,
    session_id        uuid        NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
    state             text        NOT NULL CONSTRAINT sandboxes_state CHECK (state IN ('creating', 'ready', 'stopping', 'stopped', 'failed')),
    host              text        NOT NULL,
    generation        integer     NOT NULL CONSTRAINT sandboxes_generation CHECK (generation >= 0),
    runtime_ref       text        NOT NULL DEFAULT '',
    volume            text        NOT NULL DEFAULT '',
    image             text        NOT NULL DEFAULT '',
    runtime           text        NOT NULL DEFAULT '',
    checked_out       boolean     NOT NULL DEFAULT false,
    failure_code      text        NOT NULL DEFAULT '',
    failure_text      text        NOT NULL DEFAULT '',
    stop_requested_at timestamptz,
    last_used_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX one_live_sandbox ON sandboxes (session_id) WHERE state <> 'failed';
CREATE INDEX sandboxes_newest ON sandboxes (session_id, generation DESC);
CREATE INDEX sandboxes_on_host ON sandboxes (host) WHERE state <> 'failed';

CREATE TABLE events (
    session_id uuid        NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
    sequence   bigint      NOT NULL CONSTRAINT events_sequence CHECK (sequence > 0),
    type       text        NOT NULL,
    producer   text        NOT NULL CONSTRAINT events_producer CHECK (producer IN ('person', 'platform', 'agent')),
    message_id uuid,
    payload    jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, sequence),
    CONSTRAINT events_message FOREIGN KEY (session_id, message_id) REFERENCES messages (session_id, id) ON DELETE CASCADE
);
CREATE INDEX events_tool_results ON events (session_id, sequence DESC) WHERE type = 'agent_tool_result';

-- Append-only for everybody; only the cascade of a deleted session, itself a trigger, gets through.
CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE ON events FOR EACH ROW
    WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION refuse_change('the log is append-only');
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON events FOR EACH STATEMENT
    EXECUTE FUNCTION refuse_change('the log is append-only');

-- bytes is NULL once retention has dropped them. files is the index of a diff, with its totals
-- beside it for lists.
CREATE TABLE artifacts (
    id            uuid        PRIMARY KEY,
    session_id    uuid        NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
    message_id    uuid,
    kind          text        NOT NULL CONSTRAINT artifacts_kind CHECK (kind IN ('diff', 'tool_output')),
    name          text        NOT NULL,
    media_type    text        NOT NULL,
    size          bigint      NOT NULL CONSTRAINT artifacts_size CHECK (size >= 0),
    sha256        text        NOT NULL CONSTRAINT artifacts_sha256 CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    truncated     boolean     NOT NULL DEFAULT false,
    redactions    integer     NOT NULL DEFAULT 0,
    bytes         bytea,
    files         jsonb,
    changed_files integer     NOT NULL DEFAULT 0,
    additions     integer     NOT NULL DEFAULT 0,
    deletions     integer     NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT artifacts_message FOREIGN KEY (session_id, message_id) REFERENCES messages (session_id, id) ON DELETE CASCADE,
    CONSTRAINT artifacts_diff_index CHECK ((kind = 'diff') = (files IS NOT NULL))
);
CREATE INDEX artifacts_newest_diff ON artifacts (session_id, created_at DESC) WHERE kind = 'diff';
CREATE INDEX artifacts_of_message ON artifacts (session_id, message_id);

CREATE TABLE checkpoints (
    id         uuid        PRIMARY KEY,
    session_id uuid        NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
    message_id uuid,
    base_sha   text        NOT NULL CONSTRAINT checkpoints_base_sha CHECK (base_sha ~ '^[0-9a-f]{40}$'),
    deleted    jsonb       NOT NULL,
    files      integer     NOT NULL,
    bytes      bigint      NOT NULL,
    missing    jsonb       NOT NULL,
    archive    bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT checkpoints_message FOREIGN KEY (session_id, message_id) REFERENCES messages (session_id, id) ON DELETE CASCADE
);
-- A checkpoint is zstd already.
ALTER TABLE checkpoints ALTER COLUMN archive SET STORAGE EXTERNAL;
CREATE INDEX checkpoints_newest ON checkpoints (session_id, created_at DESC);

-- The ledger: one row per attempt. pushed_at stays when a later step fails.
CREATE TABLE publications (
    id             uuid        PRIMARY KEY,
    session_id     uuid        NOT NULL REFERENCES chat_sessions ON DELETE CASCADE,
    message_id     uuid,
    requested_by   uuid        REFERENCES users ON DELETE RESTRICT,
    client_key     text        NOT NULL DEFAULT '',
    title          text        NOT NULL,
    body           text        NOT NULL,
    step           text        NOT NULL CONSTRAINT publications_step CHECK (step IN ('requested', 'committed', 'pushed', 'done', 'failed')),
    outcome        text        NOT NULL DEFAULT '' CONSTRAINT publications_outcome CHECK (outcome IN ('', 'opened', 'updated', 'unchanged')),
    tree_sha       text        NOT NULL DEFAULT '',
    commit_sha     text        NOT NULL DEFAULT '',
    remote_before  text        NOT NULL DEFAULT '',
    number         integer     NOT NULL DEFAULT 0,
    failure_code   text        NOT NULL DEFAULT '',
    failure_text   text        NOT NULL DEFAULT '',
    left_out       jsonb       NOT NULL DEFAULT '[]',
    waiting_until  timestamptz,
    waiting_reason text        NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    pushed_at      timestamptz,
    finished_at    timestamptz,
    CONSTRAINT publications_message FOREIGN KEY (session_id, message_id) REFERENCES messages (session_id, id) ON DELETE CASCADE,
    CONSTRAINT publications_done CHECK ((step = 'done') = (outcome <> '')),
    CONSTRAINT publications_failure CHECK ((step = 'failed') = (failure_code <> '')),
    CONSTRAINT publications_finished CHECK ((step IN ('done', 'failed')) = (finished_at IS NOT NULL))
);
CREATE UNIQUE INDEX one_unfinished_publication ON publications (session_id) WHERE step IN ('requested', 'committed', 'pushed');
CREATE UNIQUE INDEX publications_client_key ON publications (session_id, client_key) WHERE client_key <> '';
CREATE INDEX publications_newest ON publications (session_id, created_at DESC);

CREATE TABLE pull_requests (
    session_id uuid        PRIMARY KEY REFERENCES chat_sessions ON DELETE CASCADE,
    number     integer     NOT NULL CONSTRAINT pull_requests_number CHECK (number > 0),
    url        text        NOT NULL,
    state      text        NOT NULL CONSTRAINT pull_requests_state CHECK (state IN ('open', 'closed', 'merged')),
    head_sha   text        NOT NULL,
    title      text        NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- session_id has no foreign key: what was done stays on record after the session is purged.
CREATE TABLE audit_log (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES users ON DELETE RESTRICT,
    action     text        NOT NULL,
    session_id uuid,
    detail     text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX audit_log_recent ON audit_log (created_at DESC);
