package publish

import (
	"context"
	"path"
	"slices"
	"strings"

	"agent-sandboxing/core/mirror"
)

// maxTemplate bounds the repository's template of a pull request, in bytes; a longer one is left out.
const maxTemplate = 20_000

// template is the repository's text for new pull requests as at the session's base, "" for none. GitHub
// itself puts it only into forms, so a pull request made by its API has to bring it. Of several GitHub
// takes the first of these folders; of several that ask to choose, in a folder of their own, none.
func template(ctx context.Context, q *mirror.Quarantine) (string, error) {
	for _, folder := range []string{".github", "", "docs"} {
		files, err := q.Files(ctx, q.Base, folder)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(files, func(f mirror.Entry) bool { return isTemplate(path.Base(f.Path)) })
		if at < 0 {
			continue
		}
		blob := []string{files[at].SHA}
		sizes, err := q.Sizes(ctx, blob)
		if err != nil || sizes[0] > maxTemplate {
			return "", err
		}
		var text string
		err = q.EachBlob(ctx, blob, func(_ int, data []byte) { text = strings.ToValidUTF8(string(data), "\uFFFD") })
		return text, err
	}
	return "", nil
}

func isTemplate(name string) bool {
	stem, extension, _ := strings.Cut(strings.ToLower(name), ".")
	return stem == "pull_request_template" && (extension == "" || extension == "md" || extension == "txt")
}
