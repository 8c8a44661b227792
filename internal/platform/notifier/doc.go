// Package notifier notifies the subscriptions of this process of changes.
//
// It owns the hub, which maps keys to followers and keeps the latest event for each of
// them; Follow, which combines a load function and the hub into a stream of states that
// starts with a snapshot, never goes back and always ends; and the status bus, which
// carries changes to the hubs of all other processes. It does not know the meaning of
// states, access rights, or the wire protocol to the client.
//
// The hub and the bus may lose events. A follower still sees the final state, because
// Follow loads again every few seconds.
package notifier
