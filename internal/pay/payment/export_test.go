package payment

// ProviderGrace is how long an order waits for a provider past its deadline.
const ProviderGrace = providerGrace

// ExpireTimeout bounds one step of the expiry loop.
const ExpireTimeout = expireTimeout

// LimitExpiry bounds the batches of a step of the expiry loop.
func (s *Service) LimitExpiry(batches int) { s.expiry.batches = batches }

// ExpireBatch is the size of such a batch.
const ExpireBatch = expireBatch
