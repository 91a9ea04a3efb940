// Command generate cuts the operations that the product may use out of GitHub's own description of its
// REST API, with everything they refer to, and writes them as slice.json:
//
//	generate api.github.com.json slice.json
//
// The description is api.github.com.json of the npm package @octokit/openapi; `make github-contract`
// fetches the pinned version and runs this.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// operations are what may be asked, as "METHOD path" of the description.
var operations = []string{
	"GET /app",
	"GET /app/hook/deliveries",
	"POST /app/hook/deliveries/{delivery_id}/attempts",
	"GET /app/installations",
	"GET /app/installations/{installation_id}",
	"POST /app/installations/{installation_id}/access_tokens",
	"DELETE /applications/{client_id}/grant",
	"DELETE /applications/{client_id}/token",
	"POST /applications/{client_id}/token",
	"GET /installation/repositories",
	"DELETE /installation/token",
	"GET /meta",
	"GET /rate_limit",
	"GET /repos/{owner}/{repo}",
	"GET /repos/{owner}/{repo}/branches",
	"GET /repos/{owner}/{repo}/collaborators/{username}/permission",
	"GET /repos/{owner}/{repo}/commits/{ref}",
	"GET /repos/{owner}/{repo}/compare/{basehead}",
	"GET /repos/{owner}/{repo}/git/commits/{commit_sha}",
	"GET /repos/{owner}/{repo}/git/matching-refs/{ref}",
	"GET /repos/{owner}/{repo}/git/ref/{ref}",
	"DELETE /repos/{owner}/{repo}/git/refs/{ref}",
	"PATCH /repos/{owner}/{repo}/git/refs/{ref}",
	"POST /repos/{owner}/{repo}/git/refs",
	"GET /repos/{owner}/{repo}/installation",
	"POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
	"POST /repos/{owner}/{repo}/issues/{issue_number}/labels",
	"GET /repos/{owner}/{repo}/pulls",
	"POST /repos/{owner}/{repo}/pulls",
	"GET /repos/{owner}/{repo}/pulls/{pull_number}",
	"PATCH /repos/{owner}/{repo}/pulls/{pull_number}",
	"GET /repos/{owner}/{repo}/rules/branches/{branch}",
	"GET /user",
	"GET /user/installations",
	"GET /user/installations/{installation_id}/repositories",
	"GET /users/{username}",
}

// names are the keywords whose objects map names to things, so that a key in them is no keyword.
var names = []string{"properties", "patternProperties", "responses", "schemas", "headers", "content", "paths", "parameters", "mapping", "links"}

// dropped are keywords that say nothing about what is valid.
var dropped = []string{"example", "examples", "externalDocs", "tags", "summary", "x-github", "x-github-breaking-changes", "links", "callbacks"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want two file names, got %d", len(args))
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	slice, err := cut(whole)
	if err != nil {
		return err
	}
	text, err = json.MarshalIndent(slice, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], append(text, '\n'), 0o644)
}

// cut makes the description of the operations alone.
func cut(whole map[string]any) (map[string]any, error) {
	paths, _ := whole["paths"].(map[string]any)
	kept := map[string]any{}
	for _, operation := range operations {
		method, path, _ := strings.Cut(operation, " ")
		item, _ := paths[path].(map[string]any)
		found, ok := item[strings.ToLower(method)]
		if !ok {
			return nil, fmt.Errorf("the description has no %s", operation)
		}
		name := slashed(whole, path, found)
		into, ok := kept[name].(map[string]any)
		if !ok {
			into = map[string]any{}
			kept[name] = into
		}
		into[strings.ToLower(method)] = strip(found, false)
	}
	components := map[string]any{}
	if err := collect(whole, kept, components); err != nil {
		return nil, err
	}
	info, _ := whole["info"].(map[string]any)
	return map[string]any{
		"openapi":    whole["openapi"],
		"info":       map[string]any{"title": info["title"], "version": info["version"], "license": info["license"]},
		"paths":      kept,
		"components": components,
	}, nil
}

// slashed marks the parameters of a path whose value may hold slashes, in the way that the router of
// package contract reads it.
func slashed(whole map[string]any, path string, operation any) string {
	o, _ := operation.(map[string]any)
	list, _ := o["parameters"].([]any)
	for _, p := range list {
		parameter, _ := p.(map[string]any)
		if ref, ok := parameter["$ref"].(string); ok {
			parameter = component(whole, ref)
		}
		if name, _ := parameter["name"].(string); parameter["x-multi-segment"] == true {
			path = strings.ReplaceAll(path, "{"+name+"}", "{"+name+":.+}")
		}
	}
	return path
}

// component finds what a $ref names; nil when there is none.
func component(whole map[string]any, ref string) map[string]any {
	kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
	all, _ := whole["components"].(map[string]any)
	group, _ := all[kind].(map[string]any)
	target, _ := group[name].(map[string]any)
	return target
}

// collect copies what node refers to from whole into components, and what that refers to.
func collect(whole map[string]any, node any, components map[string]any) error {
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			if err := collect(whole, v, components); err != nil {
				return err
			}
		}
	case map[string]any:
		ref, isRef := node["$ref"].(string)
		if !isRef {
			for _, v := range node {
				if err := collect(whole, v, components); err != nil {
					return err
				}
			}
			return nil
		}
		target := component(whole, ref)
		if target == nil {
			return fmt.Errorf("the description has no %s", ref)
		}
		kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
		into, ok := components[kind].(map[string]any)
		if !ok {
			into = map[string]any{}
			components[kind] = into
		}
		if _, done := into[name]; done {
			return nil
		}
		into[name] = strip(target, false)
		return collect(whole, into[name], components)
	}
	return nil
}

// strip leaves out prose. named says that the keys of node are names and no keywords.
func strip(node any, named bool) any {
	switch node := node.(type) {
	case []any:
		for i, v := range node {
			node[i] = strip(v, false)
		}
	case map[string]any:
		for key, v := range node {
			if named {
				node[key] = strip(v, false)
				continue
			}
			_, isText := v.(string)
			switch {
			case slices.Contains(dropped, key):
				delete(node, key)
			case key == "description" && isText:
				node[key] = "" // a response must have one
				if !isResponse(node) {
					delete(node, key)
				}
			default:
				node[key] = strip(v, slices.Contains(names, key))
			}
		}
	}
	return node
}

// isResponse tells a response from a schema, a parameter and an operation.
func isResponse(node map[string]any) bool {
	for _, key := range []string{"type", "properties", "allOf", "anyOf", "oneOf", "enum", "nullable", "in", "operationId", "title", "schema", "format", "items", "additionalProperties"} {
		if _, ok := node[key]; ok {
			return false
		}
	}
	return true
}
