package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// People lists who has signed in, for administrators.
func (h *Handlers) People(c echo.Context) error {
	people, audit, err := h.Chat.People(c.Request().Context(), user(c), c.QueryParam("q"))
	if err != nil {
		return err
	}
	p := pages.PeopleProps{Layout: h.Frame(c, "People", "people"), Query: c.QueryParam("q"), Full: len(people) >= chat.MaxPeople}
	for _, person := range people {
		p.People = append(p.People, pages.PersonProps{
			ID: string(person.User.ID), Login: person.User.Login, Name: person.User.Name, AvatarURL: link.Avatar(int64(person.User.GitHubID)),
			Admin: person.User.Role == core.Admin, Configured: person.Configured, Self: person.User.ID == user(c).ID,
			LastSeenAt: person.LastSeenAt, Browsers: person.Browsers, Connected: person.Connected,
		})
	}
	for _, a := range audit {
		p.Audit = append(p.Audit, pages.AuditProps{By: a.By, Action: a.Action, Detail: a.Detail, At: a.At})
	}
	return Page(c, http.StatusOK, pages.People(p))
}

// SetRole makes somebody an administrator or a member.
func (h *Handlers) SetRole(c echo.Context) error {
	var form struct {
		Role string `form:"role" json:"role"`
	}
	id, err := core.ParseID[core.UserID](c.Param("person"))
	if err != nil {
		return err
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	if err := h.Chat.SetRole(c.Request().Context(), user(c), id, core.UserRole(form.Role)); err != nil {
		return err
	}
	return seeOther(c, link.People+"?did=role_changed")
}

// SignOutPerson ends every login of somebody.
func (h *Handlers) SignOutPerson(c echo.Context) error {
	id, err := core.ParseID[core.UserID](c.Param("person"))
	if err != nil {
		return err
	}
	if err := h.Chat.SignOutPerson(c.Request().Context(), user(c), id); err != nil {
		return err
	}
	return seeOther(c, link.People+"?did=person_signed_out")
}
