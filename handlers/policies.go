package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
)

// policyAnswer is which shell policy new sessions on a repository get.
type policyAnswer struct {
	Repository repositoryAnswer `json:"repository"`
	Ceiling    string           `json:"ceiling"`
	Chosen     string           `json:"chosen"` // "" when no administrator chose one
	Effective  string           `json:"effective"`
}

// RepositoryPolicy answers an administrator in JSON.
func (h *Handlers) RepositoryPolicy(c echo.Context) error {
	installation, repository, err := repositoryParams(c)
	if err != nil {
		return err
	}
	p, err := h.Chat.RepositoryPolicy(c.Request().Context(), user(c), installation, repository)
	if err != nil {
		return err
	}
	return answerPolicy(c, p)
}

// SetRepositoryPolicy takes {"bash_policy": "readonly"}, "" for the operator's.
func (h *Handlers) SetRepositoryPolicy(c echo.Context) error {
	installation, repository, err := repositoryParams(c)
	if err != nil {
		return err
	}
	var form struct {
		BashPolicy string `form:"bash_policy" json:"bash_policy"`
	}
	if err := bind(c, &form); err != nil {
		return err
	}
	p, err := h.Chat.SetRepositoryPolicy(c.Request().Context(), user(c), installation, repository, core.BashPolicy(form.BashPolicy))
	if err != nil {
		return err
	}
	return answerPolicy(c, p)
}

func repositoryParams(c echo.Context) (core.InstallationID, core.RepositoryID, error) {
	installation, err := number(c.Param("installation"))
	if err != nil {
		return 0, 0, err
	}
	repository, err := number(c.Param("repository"))
	return core.InstallationID(installation), core.RepositoryID(repository), err
}

func answerPolicy(c echo.Context, p core.RepositoryPolicy) error {
	noStore(c)
	r := p.Repository
	return c.JSON(http.StatusOK, policyAnswer{
		Repository: repositoryAnswer{ID: int64(r.ID), Installation: int64(r.InstallationID), FullName: r.FullName()},
		Ceiling:    string(p.Ceiling), Chosen: string(p.Chosen), Effective: string(p.Effective),
	})
}
