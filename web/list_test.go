package web_test

import (
	"strings"
	"testing"
)

// Administrators may look at everybody's sessions, so they are offered them, also before they have
// one themselves; for anybody else the filter changes nothing.
func TestList_AdministratorsFindEverybodysSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := string(r.signedIn(t, owner).create("Name the lines"))
	for _, test := range []struct {
		login, path    string
		found, offered bool
	}{
		{admin, "/", false, true},
		{admin, "/?all=1", true, true},
		{admin, "/?all=1&q=lines", true, true},
		{admin, "/?all=1&q=other", false, true},
		{owner, "/", true, false},
		{colleague, "/?all=1", false, false},
	} {
		page := r.signedIn(t, test.login).get(test.path).html()
		if got := page.Find("#session-"+id).Length() == 1; got != test.found {
			t.Errorf("%s finds the session at %s: %t", test.login, test.path, got)
		}
		if got := page.Find("select#all").Length() == 1; got != test.offered {
			t.Errorf("%s is offered everybody's at %s: %t", test.login, test.path, got)
		}
	}
	row := r.signedIn(t, admin).get("/?all=1").html().Find("#session-" + id)
	if !strings.Contains(row.Text(), "by "+owner) {
		t.Errorf("the row does not say whose it is: %s", row.Text())
	}
	all := r.signedIn(t, admin).get("/?all=1&q=other").html().Find("#sessions a")
	if to := all.AttrOr("href", ""); to != "/?all=1" {
		t.Errorf("no match leads to %q", to)
	}
}
