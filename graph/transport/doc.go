// Package transport carries GraphQL over HTTP: POST and GET answered in one
// piece, subscriptions over WebSocket (graphql-transport-ws) and over
// server-sent events (graphql-sse, distinct connections).
//
// It owns what a client may send and how long it may take, the media types and
// status codes, the life of sockets and streams, and the moment a caller is
// told apart by a bearer token. It does not own the documents' limits (package
// guard), what a token means (Options.Authenticate) or how a fault is worded
// (Options.ErrorPresenter). gqlgen's executor runs every operation.
package transport
