// Package telemetry owns log lines, request ids, metrics and the version of the build. It
// is the only package that imports Prometheus; the others use the small interfaces and
// structs declared here.
//
// It formats and exports; the domain packages count, and the server logs requests.
package telemetry
