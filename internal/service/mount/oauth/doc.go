// Package oauth signs a person in to a server that speaks the Model Context Protocol, by OAuth
// 2.1, and renews what came of it.
//
// A [SignIn] is the authorization code flow with PKCE: it asks the server which authorization
// server it has, has a person confirm that, and waits for their browser at a loopback address.
// What results is a [Grant], one text that the host keeps among its secrets. [Refresh] renews
// the token of one. All requests go through [Client], under the rules of egress.
package oauth
