package github

import (
	"context"
	"time"
)

// SetWait replaces the pause between two tries, so that tests need not wait.
func (a *App) SetWait(wait func(context.Context, time.Duration) error) { a.wait = wait }
