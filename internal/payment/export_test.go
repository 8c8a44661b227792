package payment

// ExpireTimeout bounds one step of the expiry loop.
const ExpireTimeout = expireTimeout
