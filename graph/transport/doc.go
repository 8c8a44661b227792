// Package transport serves GraphQL over HTTP: POST and GET with a single response,
// subscriptions over WebSocket (graphql-transport-ws) and over server-sent events
// (graphql-sse, distinct connections).
//
// It defines request limits and timeouts, media types and status codes, the lifecycle of
// sockets and streams, and when a bearer token is authenticated. It does not define the
// limits of documents (package guard), the meaning of a token (Options.Authenticate) or
// the text of errors (Options.ErrorPresenter). gqlgen's executor runs every operation.
package transport
