package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"agent-sandboxing/core"
)

const artifactColumns = `id, session_id, coalesce(message_id::text, ''), kind, name, media_type, size, sha256, truncated, redactions, created_at`

func artifactFields(a *core.Artifact) []any {
	return []any{&a.ID, &a.SessionID, &a.MessageID, &a.Kind, &a.Name, &a.MediaType, &a.Size, &a.SHA256, &a.Truncated, &a.Redactions, &a.CreatedAt}
}

// SaveArtifact inserts the bytes under the lease, appends artifact_created and then events. Size
// and SHA256 are computed here, of Data.
func (s *Store) SaveArtifact(ctx context.Context, lease core.Lease, a core.Artifact, events ...core.Payload) error {
	measure(&a)
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if err := tx.insertArtifact(ctx, lease.SessionID, a, nil); err != nil {
			return err
		}
		return tx.appendOwn(ctx, lease.SessionID, a.MessageID, append([]core.Payload{created(a)}, events...)...)
	})
}

// SaveDiff inserts a diff with its file index, appends artifact_created and diff_updated.
func (s *Store) SaveDiff(ctx context.Context, lease core.Lease, a core.Artifact, files []core.ChangedFile) error {
	if files == nil {
		files = []core.ChangedFile{} // an empty diff has an index too
	}
	a.Kind = core.ArtifactDiff
	measure(&a)
	additions, deletions := core.Totals(files)
	return s.InTx(ctx, func(tx *Tx) error {
		if err := tx.lockLeased(ctx, lease); err != nil {
			return err
		}
		if err := tx.insertArtifact(ctx, lease.SessionID, a, files); err != nil {
			return err
		}
		return tx.appendOwn(ctx, lease.SessionID, a.MessageID, created(a),
			core.DiffUpdated{ArtifactID: a.ID, Files: len(files), Additions: additions, Deletions: deletions})
	})
}

// measure completes an artifact from its bytes. They are never nil: NULL means that retention dropped them.
func measure(a *core.Artifact) {
	if a.Data == nil {
		a.Data = []byte{}
	}
	sum := sha256.Sum256(a.Data)
	a.Size, a.SHA256 = int64(len(a.Data)), hex.EncodeToString(sum[:])
}

func created(a core.Artifact) core.ArtifactCreated {
	return core.ArtifactCreated{ArtifactID: a.ID, Kind: a.Kind, Name: a.Name, Size: a.Size, Truncated: a.Truncated}
}

// insertArtifact writes the row; files is the index of a diff and nil for everything else.
func (tx *Tx) insertArtifact(ctx context.Context, session core.SessionID, a core.Artifact, files []core.ChangedFile) error {
	var index *string
	if files != nil {
		text, err := document(files)
		if err != nil {
			return err
		}
		index = &text
	}
	additions, deletions := core.Totals(files)
	_, err := tx.Exec(ctx, `
		INSERT INTO artifacts (id, session_id, message_id, kind, name, media_type, size, sha256, truncated, redactions,
			bytes, files, changed_files, additions, deletions)
		VALUES ($1, $2, nullif($3, '')::uuid, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::jsonb, $13, $14, $15)`,
		a.ID, session, string(a.MessageID), a.Kind, clean(a.Name), a.MediaType, a.Size, a.SHA256, a.Truncated, a.Redactions,
		a.Data, index, len(files), additions, deletions)
	if err != nil {
		return fmt.Errorf("insert artifact: %w", err)
	}
	return nil
}

// Artifact reads one with its bytes (nil when retention has dropped them), NotFound when it belongs
// to another session.
func (s *Store) Artifact(ctx context.Context, session core.SessionID, id core.ArtifactID) (core.Artifact, error) {
	var a core.Artifact
	err := s.pool.QueryRow(ctx, `SELECT `+artifactColumns+`, bytes FROM artifacts WHERE session_id = $1 AND id = $2`, session, id).
		Scan(append(artifactFields(&a), &a.Data)...)
	return a, mapError(err)
}

// DiffIndex is the file index of a diff artifact of the session.
func (s *Store) DiffIndex(ctx context.Context, session core.SessionID, id core.ArtifactID) ([]core.ChangedFile, error) {
	var index []byte
	err := s.pool.QueryRow(ctx, `SELECT files FROM artifacts WHERE session_id = $1 AND id = $2 AND kind = 'diff'`, session, id).Scan(&index)
	if err != nil {
		return nil, mapError(err)
	}
	return decodeIndex(index)
}

// LatestDiffID is the newest diff's id, "" when nothing was captured yet.
func (s *Store) LatestDiffID(ctx context.Context, id core.SessionID) (core.ArtifactID, error) {
	diff, _, err := newestDiff(ctx, s.pool, id)
	if diff == nil {
		return "", mapError(err)
	}
	return diff.ID, nil
}

// LatestDiff is the file index of the newest diff, nil when there is none.
func (s *Store) LatestDiff(ctx context.Context, id core.SessionID) ([]core.ChangedFile, error) {
	_, files, err := newestDiff(ctx, s.pool, id)
	return files, mapError(err)
}

// newestDiff reads the newest diff without its bytes, nil when there is none.
func newestDiff(ctx context.Context, q querier, id core.SessionID) (*core.Artifact, []core.ChangedFile, error) {
	var a core.Artifact
	var index []byte
	err := q.QueryRow(ctx, `
		SELECT `+artifactColumns+`, files FROM artifacts
		WHERE session_id = $1 AND kind = 'diff' ORDER BY created_at DESC LIMIT 1`, id).
		Scan(append(artifactFields(&a), &index)...)
	if isNone(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	files, err := decodeIndex(index)
	return &a, files, err
}

func decodeIndex(index []byte) ([]core.ChangedFile, error) {
	files := []core.ChangedFile{}
	if err := json.Unmarshal(index, &files); err != nil {
		return nil, fmt.Errorf("decode file index: %w", err)
	}
	return files, nil
}
