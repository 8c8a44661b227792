// Package attack runs known attacks against a server in the production profile that it
// starts, and prints a table of attacks and results. Every attack is bounded in requests
// and in time. The tests have the build tag attack; `make attack` runs them.
package attack
