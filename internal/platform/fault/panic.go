package fault

import (
	"errors"
	"net/http"
	"sync/atomic"
)

// Place is the part of the program that caught a panic.
type Place int

// Places that catch panics.
const (
	InRequest  Place = iota // HTTP requests, operations, sockets and streams
	InBatch                 // batches of calls
	InLoop                  // periodic steps
	InFollower              // reading of followed states
	InHandler               // handlers of messages
	InEntry                 // decoding of messages
	InReply                 // decoding of replies of the database
	places
)

// String returns the name of the place in metrics.
func (p Place) String() string {
	return [places]string{"request", "batch", "loop", "follower", "handler", "entry", "reply"}[p]
}

// caught counts the panics of the process. Panics are caught in packages that know no
// metrics, and each of them is a bug, whatever part of the program it belongs to.
var caught [places]atomic.Uint64 // see above

// Caught counts a panic and returns its value. v is that of recover(), nil without a panic.
func Caught(v any, in Place) any {
	if v != nil {
		caught[in].Add(1)
	}
	return v
}

// IsAbort reports whether a handler ended its response by http.ErrAbortHandler, which is no fault.
// v is that of recover().
func IsAbort(v any) bool {
	err, ok := v.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// Panics returns the number of panics that a place has caught since the process began.
func Panics(in Place) uint64 { return caught[in].Load() }

// Places returns all places.
func Places() []Place {
	all := make([]Place, places)
	for i := range all {
		all[i] = Place(i)
	}
	return all
}
