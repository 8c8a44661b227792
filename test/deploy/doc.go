// Package deploy tests the files in deploy/: the image, the proxies, the dashboard and
// the alert rules, each with a server in the production profile and a purchase. Its tests
// have the build tag ship; `make ship` runs them.
package deploy
