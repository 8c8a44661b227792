package draw

import "time"

// SetTimeout sets the timeout of one relay.
func (r *Relays) SetTimeout(d time.Duration) { r.timeout = d }
