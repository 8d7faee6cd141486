package view

// A Context is a host elsewhere that someone has logged in to, without the token.
type Context struct {
	Name      string `json:"name"`
	URL       string `json:"url"`
	Principal string `json:"principal"`
	Current   bool   `json:"current"` // it is in use
}

// ContextOf is a context as it is shown.
func ContextOf(name, url, principal string, current bool) Context {
	return Context{name, url, principal, current}
}

// Contexts are contexts as they are listed.
var Contexts = List[Context]{
	Key:    "contexts",
	Titles: []string{"NAME", "URL", "PRINCIPAL", "IN USE"},
	None:   "no contexts; 'mortise login --server URL' begins one",
	Row: func(c Context) []string {
		use := ""
		if c.Current {
			use = "yes"
		}
		return []string{c.Name, c.URL, c.Principal, use}
	},
}
