import type { OrderStatus } from '../api/types';
import { t } from '../i18n/text';

const tones: Partial<Record<OrderStatus, string>> = { PENDING_PAYMENT: 'text-warn', PAID: 'text-good' };

/** How an order stands. */
export function StatusChip({ status }: { status: OrderStatus }) {
  return <span key={status} class={`chip ${tones[status] ?? 'text-soft'}`}>{t(`status.${status}`)}</span>;
}
