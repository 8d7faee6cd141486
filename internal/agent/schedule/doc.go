// Package schedule makes calls at times that were set in advance.
//
// A schedule belongs to a principal, in whose name its runs are made. Each of its times
// becomes one row (a tick), whichever node sees it first, and each tick that is to be
// run becomes an ordinary call under an idempotency key of its own. So a time is run
// once: two nodes agree by the tick, and a node that dies between the tick and the
// call, or in the middle of the call, is followed by another that finds them.
//
// Nothing here waits or runs anything: [Engine.Due] and [Engine.Advance] are for
// a worker that stays, and the kernel runs the calls.
package schedule
