package githubtest

import (
	"net/http"
	"strings"
)

// compare answers how two commits or branches stand to each other; of the list of commits only a page.
func (s *Server) compare(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if err := s.readable(r, c, repo); err != nil {
		return err
	}
	from, to, ok := strings.Cut(r.PathValue("basehead"), "...")
	if !ok {
		return notFound()
	}
	base, err := s.commit(r.Context(), repo.ID, from)
	if err != nil {
		return notFound()
	}
	head, err := s.commit(r.Context(), repo.ID, to)
	if err != nil {
		return notFound()
	}
	ahead, err := s.ahead(r.Context(), repo.ID, base.SHA, head.SHA)
	if err != nil {
		return err
	}
	behind, err := s.ahead(r.Context(), repo.ID, head.SHA, base.SHA)
	if err != nil {
		return err
	}
	common, err := s.git(r.Context(), repo.ID, nil, "merge-base", base.SHA, head.SHA)
	if err != nil {
		return notFound()
	}
	fork, err := s.commit(r.Context(), repo.ID, strings.TrimSpace(string(common)))
	if err != nil {
		return err
	}
	status := map[[2]bool]string{{false, false}: "identical", {true, false}: "ahead", {false, true}: "behind", {true, true}: "diverged"}
	web := origin(r) + "/" + repo.fullName() + "/compare/" + from + "..." + to
	return reply(w, http.StatusOK, object{
		"url": s.repoAPI(r, repo) + "/compare/" + from + "..." + to, "html_url": web, "permalink_url": web, "diff_url": web + ".diff", "patch_url": web + ".patch",
		"base_commit": s.commitJSON(r, repo, base), "merge_base_commit": s.commitJSON(r, repo, fork),
		"status": status[[2]bool{ahead > 0, behind > 0}], "ahead_by": ahead, "behind_by": behind, "total_commits": ahead,
		"commits": []object{s.commitJSON(r, repo, head)}[:min(ahead, 1)], "files": []object{},
	})
}
