import type { Order } from '../api/types';

/** What can be done with an order: what the server says, and nothing where it says nothing. */
export function OrderActions({ order }: { order: Order }) {
  if (!__HAS_PAYMENT__ || !order.availableActions?.length) return null;
  return null;
}
