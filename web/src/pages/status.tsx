import type { OrderStatus } from '@seckill/client/types';
import { t } from '../i18n/text';

const tones: Partial<Record<OrderStatus, string>> = { PENDING_PAYMENT: 'text-warn', PAID: 'text-good' };

/** The status of an order. */
export function StatusChip({ status }: { status: OrderStatus }) {
  return <span key={status} class={`chip ${tones[status] ?? 'text-soft'}`}>{t(`status.${status}`)}</span>;
}
