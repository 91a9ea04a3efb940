package store_test

import (
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/turn"
	"agent-sandboxing/sandbox"
)

// The store serves each of its callers' interfaces.
var (
	_ turn.Store    = (*store.Store)(nil)
	_ chat.Store    = (*store.Store)(nil)
	_ publish.Store = (*store.Store)(nil)
	_ sandbox.Store = (*store.Store)(nil)
)
