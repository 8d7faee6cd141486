// Package process runs plugins as child processes and speaks the plugin
// protocol with them over standard input and output.
//
// A [Runner] owns every process it starts and all their goroutines; when Close
// returns, none is left. A plugin that exits, hangs or writes anything but
// frames fails the calls in flight with a *plugin.Error of its own code; it
// never turns into a success and never takes the host down. Everything that
// comes from a plugin is bounded: lines, queues, standard error, time.
//
// A plugin of protocol 2 is a process in a warm pool, with a connection to it ([Runner.Run]
// picks or starts one); a plugin of protocol 1 is one process for one call. Whether a
// plugin may run at all is not decided here: see package kernel.
package process
