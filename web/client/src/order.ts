import type { Client } from './client.ts';
import { CancelOrder, OneOrder, OrderStatus, PayOrder } from './documents/order.ts';
import { actionKey, clearActionKey } from './pending.ts';
import type { Failure, Order, Payment } from './types.ts';

const POLL_MS = 3_000;
/** Final states. An expired order is not: a late payment may still be accepted. */
const LAST: Order['status'][] = ['CANCELLED', 'REFUNDED'];

/** The payload of a mutation on an order. */
export interface OrderPayload {
  order: Order | null;
  userErrors: Failure[];
  payment?: Payment | null;
}

/** Reads an order; null where the user has none with this id. */
export async function readOrder(client: Client, id: string, signal?: AbortSignal): Promise<Order | null> {
  return (await client.request(OneOrder, { id }, signal)).order;
}

/** Follows an order until it cannot change any more. `take` may return true to stop earlier. */
export function followOrder(client: Client, id: string, take: (order: Order) => boolean | void): () => void {
  let newest = -1;
  const next = (order: Order): boolean => {
    if (order.revision < newest) return false;
    newest = order.revision;
    return take(order) === true || LAST.includes(order.status);
  };
  return client.follow(OrderStatus, { id }, {
    next: ({ orderStatus }) => next(orderStatus.order),
    poll: async (signal) => {
      const order = await readOrder(client, id, signal);
      return order && next(order) ? null : POLL_MS;
    },
  });
}

/** Name of the payment action for idempotency keys: each option has its own key, and each page to come back to. */
const payAction = (option: string, returnUrl?: string): string => `pay ${option}${returnUrl ? ` ${returnUrl}` : ''}`;

/**
 * Begins a payment, or returns the one that was begun before. A closed one is replaced. The provider leads back to `returnUrl`,
 * a page of an origin that the server allows, or without it to the page of the order in the server's settings.
 */
export async function payOrder(client: Client, orderId: string, optionId: string, returnUrl?: string): Promise<OrderPayload | null> {
  const act = payAction(optionId, returnUrl);
  const idempotencyKey = actionKey(client.store, act, orderId);
  const input = { orderId, optionId, idempotencyKey, ...(returnUrl && { returnUrl }) };
  const { payOrder: payload } = await client.request(PayOrder, { input });
  if (payload?.payment?.status === 'PENDING') return payload;
  clearActionKey(client.store, act, orderId, idempotencyKey);
  return payload?.payment?.status === 'CLOSED' ? payOrder(client, orderId, optionId, returnUrl) : payload;
}

/** Begins another payment after a declined one. */
export function payAgain(client: Client, orderId: string, optionId: string, returnUrl?: string): Promise<OrderPayload | null> {
  const act = payAction(optionId, returnUrl);
  clearActionKey(client.store, act, orderId, actionKey(client.store, act, orderId));
  return payOrder(client, orderId, optionId, returnUrl);
}

/** Cancels an order that was not paid. */
export async function cancelOrder(client: Client, orderId: string): Promise<OrderPayload | null> {
  return (await client.request(CancelOrder, { input: { orderId } })).cancelOrder;
}
