package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// parseProblems turns the parser's errors into lines that name the variable but not its value.
func parseProblems(err error) []error {
	agg, ok := errors.AsType[env.AggregateError](err)
	if !ok {
		return []error{errors.New("the environment cannot be read")}
	}
	var out []error
	for _, e := range agg.Errors {
		if p, ok := errors.AsType[env.ParseError](e); ok {
			out = append(out, fmt.Errorf("%s is not %s", variableOf(p.Name), kindOf(p.Type)))
			continue
		}
		out = append(out, errors.New("a variable cannot be read"))
	}
	return out
}

// kindOf says what a value must look like.
func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number without a unit"
	case t.ConvertibleTo(reflect.TypeFor[float64]()):
		return "a whole number without a unit"
	}
	return "a " + t.String()
}

// readable keeps what is said of variables that could be read. One that could not has no value, and
// what is said of that would mislead. Each line begins with its variable.
func readable(problems, unreadable []error) []error {
	variable := func(err error) string { name, _, _ := strings.Cut(err.Error(), " "); return name }
	return slices.DeleteFunc(problems, func(err error) bool {
		return slices.ContainsFunc(unreadable, func(other error) bool { return variable(other) == variable(err) })
	})
}

// variableOf finds the variable behind a field's name, which it matches letter by letter.
func variableOf(field string) string {
	params, err := env.GetFieldParams(&Config{})
	if err != nil {
		return field
	}
	for _, f := range params {
		if strings.EqualFold(strings.ReplaceAll(f.OwnKey, "_", ""), field) {
			return f.Key
		}
	}
	return field
}
