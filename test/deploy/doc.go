// Package deploy checks what deploy/ ships: the image, the proxies, the dashboard and
// the alert rules, each with a server of the production profile and a purchase. Its
// tests have the build tag ship; `make ship` runs them.
package deploy
