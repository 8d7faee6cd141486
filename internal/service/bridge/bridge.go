// Package bridge lets plugins and models use the engines of services: it fits sessions,
// secrets, accounts and budgets to what the broker, the kernel and the models ask for.
package bridge
