// Package orderintake handles the messages of the order streams: it passes them to the
// order writer, executes operators' decisions about dead letters, and ends tasks whose
// message was lost.
//
//	message ──► writer ──► order, or recorded failure
//	   │
//	   └──► dead letter, its task SUBMITTED, its units reserved
//	           ├ replayed: appended to its stream again and handled like a new message
//	           ├ dropped:  the task fails, its units return to stock
//	           ├ no decision within RetryAfter: replayed, once
//	           └ no decision within DecisionTimeout: the task fails; the letter stays
//
// It owns the log of operators' decisions. It does not own how messages become dead
// letters (package stream), nor how a task ends (package order).
package orderintake
