package layout

// Product is the name on every page.
const Product = "Agent Sandboxing"

// htmxConfig allows one extension, keeps error bodies out of the page (a form that wants its 422
// says so itself), and leaves what a person opened open when a fragment redraws it.
const htmxConfig = `{"extensions":"sse","noSwap":[204,304,"4xx","5xx"],` +
	`"morphIgnore":["data-htmx-powered","open"],"history":false,"includeIndicatorCSS":false,"defaultTimeout":20000}`

// Theme is one choice of the theme form.
type Theme struct {
	Value, Label, Icon string
}

// Themes are the choices, the system's own first.
func Themes() []Theme {
	return []Theme{
		{"", "System", "system"},
		{"light", "Light", "light"},
		{"dark", "Dark", "dark"},
	}
}

func (p Props) theme() string {
	if p.Theme == "light" || p.Theme == "dark" {
		return p.Theme
	}
	return "system"
}

func (p Props) fullTitle() string {
	if p.Title == "" {
		return Product
	}
	return p.Title + " · " + Product
}

func (p Props) current(entry string) string {
	if p.Active == entry {
		return "page"
	}
	return "false"
}

func (u User) displayName() string {
	if u.Name != "" {
		return u.Name
	}
	return u.Login
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
