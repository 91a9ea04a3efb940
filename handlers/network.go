package handlers

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// networkAnswer is what a session's sandbox has reached and wanted.
type networkAnswer struct {
	Mode        string             `json:"mode"`
	Contacted   int                `json:"contacted"`
	Refused     int                `json:"refused"`
	Sent        int64              `json:"sent"` // bytes
	Received    int64              `json:"received"`
	Connections []connectionAnswer `json:"connections"` // the newest first
}

type connectionAnswer struct {
	Host        string    `json:"host"` // "" sums further hosts
	Port        int       `json:"port"`
	Allowed     bool      `json:"allowed"`
	Rule        string    `json:"rule"`
	MessageID   string    `json:"message_id,omitempty"` // of the newest
	Connections int64     `json:"connections"`
	Sent        int64     `json:"sent"`
	Received    int64     `json:"received"`
	StartedAt   time.Time `json:"started_at"` // of the first
	EndedAt     time.Time `json:"ended_at"`   // of the newest
}

// Network is every host that a session's sandbox has reached or wanted.
func (h *Handlers) Network(c echo.Context) error {
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	v, err := h.view(c, id, 0)
	if err != nil {
		return err
	}
	if v.Egress, err = h.Chat.Egress(c.Request().Context(), id); err != nil {
		return err
	}
	noStore(c)
	if WantsJSON(c.Request()) {
		return c.JSON(http.StatusOK, networkJSON(v))
	}
	p := pages.NetworkLogProps{Layout: h.Frame(c, "Network of "+v.Session.Title, "sessions"), Session: v.Session.Title, Network: v.network()}
	p.Network.Live, p.Network.AllURL = false, ""
	return Page(c, http.StatusOK, pages.NetworkLog(p))
}

func networkJSON(v sessionView) networkAnswer {
	e := v.Egress
	a := networkAnswer{
		Mode: string(v.Policy.Mode), Contacted: e.Contacted, Refused: e.Refused, Sent: e.Sent, Received: e.Received,
		Connections: make([]connectionAnswer, 0, len(e.Rows)),
	}
	for _, r := range e.Rows {
		a.Connections = append(a.Connections, connectionAnswer{
			r.Host, r.Port, r.Allowed, r.Rule, string(r.MessageID), r.Connections, r.Sent, r.Received, r.StartedAt.UTC(), r.EndedAt.UTC(),
		})
	}
	return a
}

// hostForm is a host as a form or as JSON.
type hostForm struct {
	Host string `form:"host" json:"host"`
}

// AllowHost puts a host on the list of the session's repository. The page hears of it by the stream.
func (h *Handlers) AllowHost(c echo.Context) error {
	var form hostForm
	id, err := sessionID(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	if err := h.Chat.AllowHost(c.Request().Context(), user(c), id, form.Host); err != nil {
		return err
	}
	if WantsJSON(c.Request()) || IsPartial(c.Request()) {
		return c.NoContent(http.StatusNoContent)
	}
	return c.Redirect(http.StatusSeeOther, link.SessionTab(string(id), "details")+"&did=host_allowed#network")
}

// repositoryNetworkAnswer is what sandboxes of new sessions on a repository may reach.
type repositoryNetworkAnswer struct {
	Repository repositoryAnswer `json:"repository"`
	Ceiling    string           `json:"ceiling"`
	Chosen     string           `json:"chosen"` // "" when no administrator chose one
	Effective  string           `json:"effective"`
	Hosts      []hostAnswer     `json:"hosts"`
	Operator   []string         `json:"operator_hosts"`
}

type hostAnswer struct {
	Host    string    `json:"host"`
	AddedBy string    `json:"added_by,omitempty"`
	AddedAt time.Time `json:"added_at"`
}

// RepositoryNetwork shows a repository's mode and list to whoever sees the repository.
func (h *Handlers) RepositoryNetwork(c echo.Context) error {
	return h.showNetwork(c, http.StatusOK, "", "")
}

// showNetwork is the page, with a host that was not taken and why.
func (h *Handlers) showNetwork(c echo.Context, status int, typed, sentence string) error {
	installation, repository, err := repositoryParams(c)
	if err != nil {
		return err
	}
	n, rights, err := h.Chat.RepositoryNetwork(c.Request().Context(), user(c), installation, repository)
	if err != nil {
		return err
	}
	noStore(c)
	if WantsJSON(c.Request()) {
		return c.JSON(status, repositoryNetworkJSON(n))
	}
	p := pages.RepositoryNetworkProps{
		Layout: h.Frame(c, "Network of "+n.Repository.FullName(), ""), Installation: int64(installation), Repository: int64(repository),
		FullName: n.Repository.FullName(), Effective: string(n.Effective), Chosen: string(n.Chosen), Ceiling: string(n.Ceiling),
		Operator: n.Operator, CanList: rights.Hosts, CanChoose: rights.Mode, Typed: typed, HostError: sentence,
	}
	for _, m := range n.Ceiling.Modes() {
		p.Modes = append(p.Modes, string(m))
	}
	for _, host := range n.Hosts {
		p.Hosts = append(p.Hosts, pages.HostProps{Host: host.Host, AddedBy: host.AddedBy, AddedAt: host.AddedAt})
	}
	return Page(c, status, pages.RepositoryNetwork(p))
}

func repositoryNetworkJSON(n core.RepositoryNetwork) repositoryNetworkAnswer {
	r := n.Repository
	a := repositoryNetworkAnswer{
		Repository: repositoryAnswer{ID: int64(r.ID), Installation: int64(r.InstallationID), FullName: r.FullName()},
		Ceiling:    string(n.Ceiling), Chosen: string(n.Chosen), Effective: string(n.Effective),
		Hosts: make([]hostAnswer, 0, len(n.Hosts)), Operator: append([]string{}, n.Operator...),
	}
	for _, host := range n.Hosts {
		a.Hosts = append(a.Hosts, hostAnswer{host.Host, host.AddedBy, host.AddedAt.UTC()})
	}
	return a
}

// AddHost puts a host on a repository's list. What cannot be taken is said beside the field.
func (h *Handlers) AddHost(c echo.Context) error {
	var form hostForm
	installation, repository, err := repositoryParams(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	err = h.Chat.AddHost(c.Request().Context(), user(c), installation, repository, form.Host)
	if isKind(err, core.Invalid, core.Conflict) && !WantsJSON(c.Request()) {
		return h.showNetwork(c, StatusOf(err), form.Host, core.MessageOf(err))
	}
	return h.networkChanged(c, err, "host_added")
}

// RemoveHost takes a host off a repository's list.
func (h *Handlers) RemoveHost(c echo.Context) error {
	var form hostForm
	installation, repository, err := repositoryParams(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	return h.networkChanged(c, h.Chat.RemoveHost(c.Request().Context(), user(c), installation, repository, form.Host), "host_removed")
}

// NetworkMode takes an administrator's {"mode": "allowlist"}, "" for the operator's.
func (h *Handlers) NetworkMode(c echo.Context) error {
	var form struct {
		Mode string `form:"mode" json:"mode"`
	}
	installation, repository, err := repositoryParams(c)
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	return h.networkChanged(c, h.Chat.SetRepositoryEgress(c.Request().Context(), user(c), installation, repository, core.EgressMode(form.Mode)), "mode_chosen")
}

// networkChanged answers a change with the page, or in JSON with what holds now.
func (h *Handlers) networkChanged(c echo.Context, err error, did string) error {
	if err != nil {
		return err
	}
	if WantsJSON(c.Request()) {
		return h.RepositoryNetwork(c)
	}
	installation, repository, err := repositoryParams(c)
	if err != nil {
		return err
	}
	return seeOther(c, link.RepositoryNetwork(int64(installation), int64(repository))+"?did="+did)
}
