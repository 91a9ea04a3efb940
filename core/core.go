// Package core holds the nouns of the product: typed ids, records, states, events,
// errors, and the two seams that several packages share (Workspace and the agent's turn).
// It imports nothing of ours; every other package may import it.
package core
