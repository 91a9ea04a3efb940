// Package migrations holds the database schema as numbered goose files. A file that has landed is
// never edited again; a change is a new file that old rows survive.
package migrations

import "embed"

// Files are the migrations, 0001_init.sql first.
//
//go:embed *.sql
var Files embed.FS
