// Package schedule makes calls at times that were set in advance.
//
// A schedule belongs to somebody, in whose name its runs are made. Each time of
// it that comes becomes a row, of which there is one whatever node comes to it
// first (a tick), and each tick that is to be run becomes an ordinary call under
// a key of its own. So a time is run once: two nodes agree by the tick, and a
// node that dies between the tick and the call, or in the middle of the call, is
// followed by another that finds them.
//
// Nothing here waits or runs anything: [Engine.Due] and [Engine.Attend] are for
// a worker that stays, and the kernel runs the calls.
package schedule
