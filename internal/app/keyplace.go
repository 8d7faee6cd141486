package app

import "github.com/mortise-dev/mortise/internal/service/secret"

// keyPlace returns where the master key of secrets is.
func (a *App) keyPlace() secret.Place {
	c := a.Config.Secrets
	return secret.Place{Env: c.KeyEnv, File: c.KeyFile, Command: c.KeyCommand, Dir: a.Home}
}
