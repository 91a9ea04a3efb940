package bashpolicy

import "regexp"

// readyTask is the name of a command in the environment contract.
var readyTask = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// ready lets the agent prove the environment, look at it, and run what the repository's contract names.
// Converging the environment is the platform's.
func (c *command) ready() *Refusal {
	verb := ""
	if len(c.args) > 0 {
		verb = c.args[0].text
	}
	switch {
	case len(c.args) == 1 && (verb == "verify" || verb == "status"):
		return nil
	case len(c.args) == 2 && verb == "run" && c.policy != readonly && readyTask.MatchString(c.args[1].text):
		return c.scriptName(c.args[1].text)
	case verb == "run" && c.policy == readonly:
		return refuse("ready_not_allowed", "Under this policy nothing may be changed: use ready verify or ready status.")
	}
	return refuse("ready_not_allowed", "Use ready verify, ready status or ready run NAME, without options. The platform sets the environment up; to change what it holds, edit ready.yaml.")
}
