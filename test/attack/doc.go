// Package attack runs known attacks against a server of the production profile that it
// starts by itself, and ends with a table attack → held. Every attack is bounded in
// requests and in time. The tests have the build tag attack; `make attack` runs them.
package attack
