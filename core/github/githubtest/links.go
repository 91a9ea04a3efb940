package githubtest

// repositoryLinks are the addresses below a repository's own that GitHub names in each answer.
var repositoryLinks = map[string]string{
	"archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
	"branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}", "comments_url": "/comments{/number}",
	"commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}", "contents_url": "/contents/{+path}",
	"contributors_url": "/contributors", "deployments_url": "/deployments", "downloads_url": "/downloads", "events_url": "/events",
	"forks_url": "/forks", "git_commits_url": "/git/commits{/sha}", "git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}",
	"hooks_url": "/hooks", "issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
	"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}", "languages_url": "/languages",
	"merges_url": "/merges", "milestones_url": "/milestones{/number}", "notifications_url": "/notifications{?since,all,participating}",
	"pulls_url": "/pulls{/number}", "releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
	"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams", "trees_url": "/git/trees{/sha}",
}

// accountLinks are the same of a person or organization.
var accountLinks = map[string]string{
	"repos_url": "/repos", "events_url": "/events{/privacy}", "received_events_url": "/received_events", "followers_url": "/followers",
	"following_url": "/following{/other_user}", "gists_url": "/gists{/gist_id}", "starred_url": "/starred{/owner}{/repo}",
	"subscriptions_url": "/subscriptions", "organizations_url": "/orgs",
}

// link adds the addresses below base to an answer.
func link(body object, base string, below map[string]string) {
	for name, path := range below {
		body[name] = base + path
	}
}

// pullLinks are the same of a pull request, but for those that need more than its own address.
var pullLinks = map[string]string{
	"commits_url": "/commits", "review_comments_url": "/comments", "review_comment_url": "/comments{/number}",
}
