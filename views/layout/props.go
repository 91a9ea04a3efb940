// Package layout is the frame that every page stands in: head, top bar, banners, landmarks.
package layout

import "time"

// Props is what the frame needs of the request.
type Props struct {
	Title     string // of the page; the product's name is added
	Active    string // entry of the top bar: "sessions", "new" or "installations", "" for none
	User      *User  // nil when signed out
	Theme     string // "light" or "dark", "" follows the system
	DemoLabel string // shown as a slim banner on every page, "" for none
	Path      string // path and query of this page, for forms that come back to it
	Flash     string // one line that says what the last form did, "" for none
	Warning   string // one line that says why it did nothing, "" for none
	Problem   string // what an administrator has to mend, shown to administrators on every page, "" for none
	Now       time.Time
}

// User is the person signed in.
type User struct {
	Login     string
	Name      string
	AvatarURL string // on our origin, "" for none
	Admin     bool
}
