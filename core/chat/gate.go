package chat

import (
	"slices"
	"strings"

	"agent-sandboxing/core"
)

// Gate says who may use this installation. It fails closed: an empty Gate lets nobody in.
type Gate struct {
	AllowedLogins []string
	// AllowedOrgs are accounts; a person is let in who sees an installation of the App on one.
	AllowedOrgs []string
	AdminLogins []string
}

// admin says that the configuration makes the person an administrator, whatever role they have been
// given. It is asked on every request, so that a changed setting needs no new sign-in.
func (g Gate) admin(login string) bool { return listed(g.AdminLogins, login) }

func (g Gate) byLogin(login string) bool {
	return listed(g.AllowedLogins, login) || listed(g.AdminLogins, login)
}

func (g Gate) byInstallation(list []core.Installation) bool {
	return slices.ContainsFunc(list, func(i core.Installation) bool {
		return !i.Suspended && listed(g.AllowedOrgs, i.Account)
	})
}

// refusal is what somebody reads who was not let in.
func (g Gate) refusal(login string) *core.Error {
	if len(g.AllowedLogins)+len(g.AllowedOrgs)+len(g.AdminLogins) == 0 {
		return core.Fail(core.Forbidden, "access_not_configured",
			"Nobody may sign in here yet. Set ALLOWED_LOGINS, ALLOWED_ORGS or ADMIN_LOGINS and restart the server.")
	}
	return core.Fail(core.Forbidden, "access_denied",
		"Your account @"+login+" has no access here. Ask an administrator to add it.")
}

// listed compares as GitHub does: logins know no case. An empty entry matches nobody.
func listed(list []string, login string) bool {
	return login != "" && slices.ContainsFunc(list, func(s string) bool {
		return strings.EqualFold(strings.TrimSpace(s), login)
	})
}
