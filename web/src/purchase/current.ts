/** The state of a sale with the results that arrived after it was read: a status never goes back. */
import { orders } from '../api/stores';
import type { Attempt } from '@seckill/client/purchase';
import type { Bought, Sale, Viewer } from '@seckill/client/types';

const noViewer: Viewer = { action: 'NONE', disabledReason: null, access: null, items: [], order: null, orderTask: null, queueTicket: null, waitlistEntry: null };

/** The viewer with an order that is newer than it. */
function withOrder(viewer: Viewer, order: Bought): Viewer {
  return {
    ...viewer,
    action: order.status === 'PENDING_PAYMENT' ? 'PAY' : 'VIEW_ORDER',
    order,
    orderTask: null,
    queueTicket: null,
    items: viewer.items.map((each) => (each.item.id === order.item.id ? { ...each, order, remainingLimit: 0, waitlistEntry: null } : each)),
  };
}

/**
 * The sale as the user knows it: with the order of an attempt whose success arrived after the viewer was read, and with the newest
 * known state of an order. `readAt` is when the viewer was read, in ms of server time.
 */
export function currentSale(sale: Sale, attempt: Attempt, readAt: number): Sale {
  const { viewer } = sale;
  const read = viewer?.order ?? null;
  const bought = attempt.step === 'bought' && (readAt < attempt.at || viewer?.orderTask?.id === attempt.task.id) ? attempt.task.order : null;
  const order = bought && !(read?.id === bought.id && read.revision >= bought.revision) ? bought : read;
  const pushed = order ? orders.of(order.id).value : null;
  const newest = pushed && pushed.revision > order!.revision ? pushed : order;
  return newest && newest !== read ? { ...sale, viewer: withOrder(viewer ?? noViewer, newest) } : sale;
}
