package server

// worktree is the repository as the platform handles it.
type worktree struct {
	files    *Files
	commands Commands
}
