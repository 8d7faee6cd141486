// Command empty does nothing: starting it is the floor of every start.
package main

func main() {}
