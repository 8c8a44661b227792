import type { OrderStatus } from '@seckill/client/types';
import { t } from '../i18n/text';

const tones: Partial<Record<OrderStatus, string>> = { PENDING_PAYMENT: 'text-warn', PAID: 'text-good' };

/** The status of an order; one that is held for review cannot be paid yet. */
export function StatusChip({ status, held }: { status: OrderStatus; held?: boolean | undefined }) {
  const shown = held && status === 'PENDING_PAYMENT' ? 'HELD' : status;
  return <span key={shown} class={`chip ${tones[status] ?? 'text-soft'}`}>{t(`status.${shown}`)}</span>;
}
