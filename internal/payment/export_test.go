package payment

// ProviderGrace is how long an order waits for a provider past its deadline.
const ProviderGrace = providerGrace

// ExpireTimeout bounds one step of the expiry loop.
const ExpireTimeout = expireTimeout
